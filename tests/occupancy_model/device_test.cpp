#include "occupancy_model/device.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "core/base/error.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::HasSubstr;

std::string v100_text() {
  std::ifstream file(STITCHWORK_SOURCE_DIR "/occupancy_model/devices/v100-sxm2.json");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string message_of(const std::string& json) {
  try {
    parse_device(json, "x.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Device, TheCompiledInOnesAreTheFilesOfTheFolder) {
  std::set<std::string> ids;
  for (const Device& d : devices()) {
    EXPECT_EQ(
        read_device(std::string(STITCHWORK_SOURCE_DIR "/occupancy_model/devices/") + d.id + ".json").name,
        d.name);
    EXPECT_TRUE(ids.insert(d.id).second) << d.id;
    for (const std::string& alias : d.aliases) EXPECT_TRUE(ids.insert(alias).second) << alias;
  }
  for (const char* id : {"p100-sxm2", "v100-sxm2", "v100-pcie", "t4", "a100-sxm-80", "a100-pcie-40",
                         "a100-sxm-40", "a100-pcie-80", "h100-sxm", "h200", "rtx4090", "l4", "p4", "b200"})
    EXPECT_TRUE(ids.contains(id)) << id;
}

TEST(Device, IsFoundByIdAndAliasWhateverTheCase) {
  EXPECT_EQ(device("v100").id, "v100-sxm2");
  EXPECT_EQ(device("V100-SXM2").id, "v100-sxm2");
  EXPECT_EQ(device("H200").sms, 132);
}

TEST(Device, AnUnknownOneIsAnErrorThatNamesTheKnown) {
  try {
    device("k80");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("\"k80\""));
    EXPECT_THAT(error.hint(), HasSubstr("v100-sxm2"));
    EXPECT_THAT(error.hint(), HasSubstr("rtx4090"));
  }
}

TEST(Device, ValuesAreThoseOfTheDataSheets) {
  const Device& v100 = device("v100");
  EXPECT_EQ(v100.sms, 80);
  EXPECT_EQ(v100.max_threads_per_sm(), 2048);
  EXPECT_EQ(v100.shared_bytes_per_block_optin, 96 * 1024);
  EXPECT_EQ(v100.l2_bytes, 6 * 1024 * 1024);
  const Device& h200 = device("h200");
  EXPECT_EQ(h200.shared_bytes_per_block_optin, 227 * 1024);
  EXPECT_EQ(h200.shared_bytes_reserved_per_block, 1024);
  EXPECT_EQ(h200.dram_gb_s, 4800);
}

TEST(Device, TheSchemaNamesTheKeysOfEveryFile) {
  using nlohmann::json;
  const json schema = json::parse(std::ifstream(STITCHWORK_SOURCE_DIR "/docs/schema/device.schema.json"));
  const std::set<std::string> required(schema["required"].begin(), schema["required"].end());
  for (const Device& d : devices()) {
    const json file = json::parse(
        std::ifstream(std::string(STITCHWORK_SOURCE_DIR "/occupancy_model/devices/") + d.id + ".json"));
    std::set<std::string> keys;
    for (const auto& [key, value] : file.items()) {
      keys.insert(key);
      EXPECT_TRUE(schema["properties"].contains(key)) << key;
    }
    const std::set<std::string> of_clusters = {"gpcs", "max_cluster_blocks"};
    for (const std::string& key : of_clusters) EXPECT_EQ(keys.erase(key), d.cc_major >= 9 ? 1u : 0u) << d.id;
    EXPECT_EQ(keys.erase("products"), 1u) << d.id;  // a file of a user's need not have it
    const json& products = schema["properties"]["products"];
    for (const auto& [key, value] : file["products"].items())
      EXPECT_TRUE(products["properties"].contains(key)) << key;
    for (const json& key : products["required"])
      EXPECT_TRUE(file["products"].contains(key.get<std::string>())) << d.id << " " << key;
    EXPECT_EQ(keys, required) << d.id;
  }
}

TEST(Device, AFolderOfTheUsersAddsAndReplaces) {
  // devices() is read once, so this runs in a process of its own.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto run = [] {
    const auto folder =
        std::filesystem::temp_directory_path() / fmt::format("stitchwork_devices_{}", getpid());
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "toy.json")
        << replaced(replaced(v100_text(), "\"id\": \"v100-sxm2\"", "\"id\": \"toy\""), "[\"v100\"]", "[]");
    std::ofstream(folder / "t4.json") << replaced(
        replaced(replaced(v100_text(), "\"id\": \"v100-sxm2\"", "\"id\": \"t4\""), "[\"v100\"]", "[]"),
        "\"value\": 80", "\"value\": 3");
    setenv("STITCHWORK_DEVICES", folder.c_str(), 1);
    const bool ok = device("toy").sms == 80 && device("t4").sms == 3 && device("v100").sms == 80;
    std::filesystem::remove_all(folder);
    exit(ok ? 0 : 1);
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(
      {
        setenv("STITCHWORK_DEVICES", "/nonexistent", 1);
        try {
          devices();
        } catch (const Error& error) {
          fmt::print(stderr, "{}", error.what());
          exit(1);
        }
        exit(0);
      },
      ::testing::ExitedWithCode(1), "cannot list the folder of devices");
}

TEST(Device, BadFilesAreRefusedWithTheKey) {
  const std::string good = v100_text();
  EXPECT_EQ(message_of(good), "accepted");
  EXPECT_THAT(message_of(replaced(good, "\"sms\"", "\"smss\"")), HasSubstr("key \"sms\" is missing"));
  EXPECT_THAT(message_of(replaced(good, "\"sms\"", "\"extra\": 1, \"sms\"")),
              HasSubstr("\"extra\" is unknown"));
  EXPECT_THAT(message_of(replaced(good, "\"value\": 80", "\"value\": 80.5")),
              HasSubstr("\"sms\" is not an integer"));
  EXPECT_THAT(message_of(replaced(good, "\"value\": 80", "\"value\": 0")), HasSubstr("\"sms\" is zero"));
  EXPECT_THAT(message_of(replaced(good, "{\"value\": 80, ", "{")), HasSubstr("\"sms\" has no \"value\""));
  EXPECT_THAT(message_of(replaced(good, "\"sms\": {\"value\": 80, \"source\"",
                                  "\"sms\": {\"value\": 80, \"origin\"")),
              HasSubstr("\"sms\" has no \"source\""));
  EXPECT_THAT(message_of(replaced(good, "stitchwork.device/1", "stitchwork.plan/1")),
              HasSubstr("not a device description"));
  EXPECT_THAT(message_of(replaced(good, "\"sms\":", "\"sms\"")), HasSubstr("x.json:8: not valid JSON"));
  EXPECT_THAT(message_of("[]"), HasSubstr("not a device description"));
  EXPECT_THROW(read_device("/nonexistent/x.json"), Error);
}

TEST(Architectures, EveryDeviceHasTheTableOfItsComputeCapability) {
  for (const Device& d : devices())
    EXPECT_EQ(std::pair(d.sm.cc_major, d.sm.cc_minor), std::pair(d.cc_major, d.cc_minor)) << d.id;
}

TEST(Architectures, ADeviceBetweenTablesTakesTheOlderOne) {
  std::ifstream file(STITCHWORK_SOURCE_DIR "/occupancy_model/devices/v100-sxm2.json");
  nlohmann::json document = nlohmann::json::parse(file);
  document["cc_minor"]["value"] = 2;
  EXPECT_EQ(parse_device(document.dump(), "xavier.json").sm.name, "Volta");
}

TEST(Architectures, ATableNamesItsFaults) {
  std::ifstream file(STITCHWORK_SOURCE_DIR "/occupancy_model/devices/architectures/cc70.json");
  const nlohmann::json table = nlohmann::json::parse(file);
  EXPECT_EQ(parse_architecture(table.dump(), "t.json").fp64_lanes, 32);
  const auto error = [&](auto change) {
    nlohmann::json changed = table;
    change(changed);
    try {
      parse_architecture(changed.dump(), "t.json");
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_NE(error([](nlohmann::json& j) { j.erase("mufu_lanes"); }).find("key \"mufu_lanes\" is missing"),
            std::string::npos);
  EXPECT_NE(error([](nlohmann::json& j) { j["mufu_lanes"]["value"] = 0; }).find("is zero"),
            std::string::npos);
  EXPECT_NE(error([](nlohmann::json& j) { j["mufu_lanes"].erase("source"); }).find("has no \"source\""),
            std::string::npos);
  EXPECT_NE(error([](nlohmann::json& j) { j["sfu_lanes"] = 1; }).find("is unknown"), std::string::npos);
  EXPECT_NE(error([](nlohmann::json& j) { j["schema"] = "stitchwork.device/1"; }).find("not a table"),
            std::string::npos);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
