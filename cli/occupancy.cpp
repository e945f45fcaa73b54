// stitchwork occupancy: how many blocks an SM holds, and why no more.
#include "occupancy_model/occupancy.h"

#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "cli/table.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "occupancy_model/occupancy_limits.h"

namespace stitchwork {

void add_occupancy(CLI::App& app, Cli& cli) {
  struct OccupancyArguments {
    std::string device = "v100-sxm2";
    int block = 256, registers = 32;
    std::int64_t shared = 0;
  };
  CLI::App* command = app.add_subcommand("occupancy", "blocks an SM holds for a launch, and the limit");
  auto a = std::make_shared<OccupancyArguments>();
  command->add_option("--device,-d", a->device, "device id or alias")->capture_default_str();
  command->add_option("--block,-b", a->block, "threads a block")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  command->add_option("--regs,-r", a->registers, "registers a thread")
      ->capture_default_str()
      ->check(CLI::Range(1, 255));
  command->add_option("--smem,-s", a->shared, "bytes of shared memory a block")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  add_common(*command, cli, "  stitchwork occupancy --device v100 --block 1024 --regs 32 --smem 0");
  command->callback([&cli, a] {
    const Device& d = device(a->device);
    const Occupancy o = occupancy(d, a->block, a->registers, a->shared);
    const auto limits = occupancy_limits(d, a->block, a->registers, a->shared);
    if (cli.json) {
      nlohmann::ordered_json rows = nlohmann::ordered_json::array();
      for (const OccupancyLimit& l : limits) {
        rows.push_back({{"resource", l.resource},
                        {"unit", l.unit},
                        {"per_block", l.per_block},
                        {"per_sm", l.per_sm},
                        {"blocks", l.blocks}});
        if (l.blocks == OccupancyLimit::kUnlimited) rows.back()["blocks"] = nullptr;
      }
      return cli.print(nlohmann::ordered_json{{"schema", "stitchwork.occupancy/1"},
                                              {"device", d.id},
                                              {"block", a->block},
                                              {"registers", a->registers},
                                              {"shared_bytes", a->shared},
                                              {"blocks_per_sm", o.blocks_per_sm},
                                              {"blocks_per_wave", o.blocks_per_wave},
                                              {"occupancy", o.warps_ratio},
                                              {"limited_by", o.limiter},
                                              {"limits", rows}});
    }
    Table table({"resource", ">a block", ">an SM", "unit", ">blocks"});
    for (const OccupancyLimit& l : limits)
      table.add({std::string(l.resource) + (l.resource == o.limiter ? " *" : ""), with_commas(l.per_block),
                 with_commas(l.per_sm), std::string(l.unit),
                 l.blocks == OccupancyLimit::kUnlimited ? "any" : with_commas(l.blocks)});
    cli.print(table.text());
    cli.print(fmt::format("{}: {} per SM, {} per wave, occupancy {}, limited by {}", d.id,
                          counted(o.blocks_per_sm, "block"), o.blocks_per_wave, percent(o.warps_ratio),
                          o.limiter));
  });
}

}  // namespace stitchwork
