// Programs read the fields of --json, so none may disappear.

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/show/check.hpp"
#include "cli/show/gpus.hpp"

namespace remote::cli {
namespace {

// The names of an object's fields, sorted.
std::string list_fields(const nlohmann::json& object) {
  std::string names;
  for (const auto& [name, value] : object.items()) {
    names += (names.empty() ? "" : " ") + name;
  }
  return names;
}

TEST(JsonFields, OfAServersFacts) {
  ServerFacts facts;
  facts.disks.emplace_back().what = "project";
  facts.infiniband.emplace_back();
  facts.imported.emplace().libraries.emplace_back();
  const nlohmann::json json = to_json(facts);
  EXPECT_EQ(list_fields(json),
            "clock_ahead_s cpu disks driver gpus host import infiniband kernel kill_user_processes limits "
            "linger load memory os packages programs python torch user");
  EXPECT_EQ(list_fields(json.at("cpu")), "cores limit model numa_nodes sockets threads usable_threads");
  EXPECT_EQ(list_fields(json.at("memory")), "available_bytes limit_bytes total_bytes");
  EXPECT_EQ(list_fields(json.at("disks").at("project")),
            "free_bytes free_inodes inodes path rotational there total_bytes type writable");
  EXPECT_EQ(list_fields(json.at("python")), "program version");
  EXPECT_EQ(list_fields(json.at("torch")), "cuda hip nccl version");
  EXPECT_EQ(list_fields(json.at("import")), "cuda devices error libraries nccl seconds torch trouble");
  EXPECT_EQ(list_fields(json.at("import").at("libraries").at(0)), "bytes digest name path");
  EXPECT_EQ(list_fields(json.at("infiniband").at(0)), "device layer port rate state");
}

TEST(JsonFields, OfGpus) {
  GpuFacts facts;
  facts.gpus.emplace_back().processes.emplace_back();
  facts.tools.emplace_back();
  facts.topology.emplace();
  facts.xids.emplace().emplace_back();
  const nlohmann::json json = to_json(facts);
  EXPECT_EQ(list_fields(json), "gpus tools topology xids");
  EXPECT_EQ(list_fields(json.at("gpus").at(0)),
            "clock clock_limits clock_max compute_mode ecc ecc_uncorrected ecc_uncorrected_lifetime index "
            "lost memory_clock memory_total memory_used mig name pci persistence power power_limit processes "
            "remap_failed remap_pending temperature unreadable utilisation uuid vendor");
  EXPECT_EQ(list_fields(json.at("gpus").at(0).at("processes").at(0)), "age job memory name own pid user");
  EXPECT_EQ(list_fields(json.at("tools").at(0)), "driver library program state text vendor");
  EXPECT_EQ(list_fields(json.at("topology")), "devices links");
  EXPECT_EQ(list_fields(json.at("xids").at(0)), "code pci text");
}

}  // namespace
}  // namespace remote::cli
