// What is done wrong with tensor copies, what of them is refused, and what their forms are.
#include "core/base/error.h"
#include "simulator/isa/forms.h"
#include "simulator/isa/isa.h"
#include "tests/simulator/tensor_copies.h"

namespace stitchwork::sim {
namespace TEST_FILE {

using namespace tensor_copies;

TEST(TensorCopy, WhatIsDoneWrongIsFound) {
  const TensorMap m = tensor_of(TensorElement::kF16, {100, 40}, {64, 8});
  const Bytes tensor(bytes_of(m)), box(m.box_bytes());
  const auto expect = [&](const std::string& body, const std::string& found, const TensorMap& map,
                          const CopySetup& setup = {}) {
    const Ran ran = run_copy(body, map, tensor, box, {}, setup);
    EXPECT_NE(ran.text().find(found), std::string::npos) << "found: " << ran.text() << "\nin:\n" << body;
    EXPECT_FALSE(ran.result.findings.empty());
  };
  const std::string good = load(m, load_form(2));
  expect(without(good, kWait, "WAIT:\n"), "shared-race", m);
  expect(without(without(good, kWait, "WAIT:\n"), kDump), "block-lifetime", m);
  expect(without(good, "[%r4], [%d1", "[%r4+64], [%d1"), "misaligned", m);
  expect(without(good, "[%r4], [%d1", "[%r4+40448], [%d1"), "out-of-bounds", m);
  expect(without(good, "[%d1,", "[%d1+16,"), "misaligned", m);
  expect(without(good, "[%d1,", "[%d1+64,"), "past the 156 bytes", m);
  expect("mov.u64 %d1, %d2;\n" + good, "as a tensor map, which they are not", m, {.writes_memory = false});
  expect(without(without(good, "tensor.2d", "tensor.3d"), "{%r10, %r11}", "{%r10, %r11, %r12}"),
         "a box of 3 dimensions by a tensor map of 2", m);
  expect(without(good, "_, [%r3], 1024", "_, [%r3], 2048"), "barrier-mismatch", m);
  TensorMap larger = m;
  larger.dims[1] = 400;
  const Ran past = run_copy(good, larger, tensor, box, {0, 36});
  EXPECT_NE(past.text().find("out-of-bounds"), std::string::npos) << past.text();
  const std::string out = store(m, store_form(2));
  const CopySetup reads{.writes_memory = false};
  expect(without(out, "fence.proxy.async.shared::cta;"), "fence.proxy.async", m, reads);
  expect(without(out, "cp.async.bulk.wait_group 0;"), "block-lifetime", m, reads);
  expect(without(out, "st.shared.u32 [%r22], %r23;"), "never written", m, reads);
  // Two blocks write the same.
  CopySetup two = reads;
  two.blocks = 2;
  expect(out, "global-race", m, two);
}

TEST(TensorCopy, WhatIsNotSimulatedIsRefusedByName) {
  const auto refusal = [](const std::string& line) {
    try {
      ptx::parse(kernel(line), "tensor.ptx");
    } catch (const Error& e) {
      return e.message();
    }
    return std::string();
  };
  for (const char* mode : {"im2col::w", "im2col::w::128", "cta_group::2"})
    EXPECT_EQ(refusal(fmt::format(
                  "cp.async.bulk.tensor.4d.shared::cluster.global.{}.mbarrier::complete_tx::bytes [%r4], "
                  "[%d1, {{%r10, %r11, %r12, %r13}}], [%r3], {{%h1, %h2}};",
                  mode)),
              fmt::format("tensor copies '.{0}' are not simulated: "
                          "'cp.async.bulk.tensor.4d.shared::cluster.global.{0}.mbarrier::complete_tx::bytes'",
                          mode));
  EXPECT_EQ(
      refusal("cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%r4], [%d1, {%r10}], "
              "[%r3];"),
      "cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes takes 2 coordinates, 1 given");
}

/// Every form with a modifier more, or one less: another form, or refused.
TEST(TensorCopy, FormsTakeNoOtherModifier) {
  int tried = 0;
  for (const std::string_view pattern : ptx::bulk_patterns()) {
    for (const std::string& form : expand_spelling(pattern)) {
      EXPECT_EQ(ptx::bulk_form(form), form);
      for (const char* modifier : {"ftz", "sat", "v2", "L1::evict_last", "magic"}) {
        ++tried;
        try {
          ptx::parse(kernel(form + "." + modifier + " [%r4], [%d1, {%r10}], [%r3];"), "t.ptx");
          ADD_FAILURE() << form << "." << modifier;
        } catch (const Error& e) {
          const std::string base = form.substr(0, form.find('.'));
          const bool of_others = base == "st" && modifier == std::string_view("v2");
          EXPECT_EQ(e.message(),
                    fmt::format("instruction '{}.{}' is not supported{}", form, modifier,
                                of_others ? "" : fmt::format(": no form of '{}' has '.{}'", base, modifier)));
        }
      }
      std::size_t dot = form.find('.');
      while (dot != std::string::npos) {
        const std::size_t next = form.find('.', dot + 1);
        const std::string less = form.substr(0, dot) + (next == std::string::npos ? "" : form.substr(next));
        if (ptx::bulk_form(less).empty()) {
          EXPECT_THROW(ptx::parse(kernel(less + " [%r4], [%d1, {%r10}], [%r3];"), "t.ptx"), Error) << less;
        }
        dot = next;
      }
    }
  }
  EXPECT_GT(tried, 300);
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
