#include <filesystem>

#include <gtest/gtest.h>

#include "base/files.hpp"
#include "support/paths.hpp"
#include "wire/cbor.hpp"
#include "wire/provision.hpp"
#include "wire/request.hpp"
#include "wire/sweep_request.hpp"

// The fuzzers start with messages that decode: a seed without a new field would be rejected immediately, and
// everything after that field would not be tested.

namespace remote::wire {
namespace {

template <typename Message>
void expect_decodes(const std::filesystem::path& seed) {
  const std::string bytes = read_file(seed);
  EXPECT_NO_THROW(static_cast<void>(decode<Message>(Bytes(bytes.begin(), bytes.end())))) << seed;
}

TEST(WireSeeds, Decode) {
  const std::filesystem::path folder = std::filesystem::path(test::source_folder) / "tests/fuzz/corpus/wire";
  expect_decodes<JobsToStart>(folder / "jobs_to_start");
  expect_decodes<SweepToBegin>(folder / "sweep_to_begin");
  expect_decodes<Provisioning>(folder / "provisioning");
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("request_")) {
      expect_decodes<Request>(entry.path());
    } else if (name.starts_with("reply_")) {
      expect_decodes<Reply>(entry.path());
    }
  }
}

}  // namespace
}  // namespace remote::wire
