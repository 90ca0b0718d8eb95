#include "servers/results.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <remote/error.hpp>

namespace remote {
namespace {

using servers::WrittenFile;
using ::testing::ElementsAre;

std::vector<std::string> taken(const std::vector<std::string>& outputs,
                               const std::vector<std::string>& names) {
  servers::WrittenFiles written(outputs);
  for (const std::string& name : names) {
    written.take({{name, 1700000000, 5}});
  }
  std::vector<std::string> found;
  std::ranges::transform(written.files, std::back_inserter(found), &WrittenFile::name);
  return found;
}

TEST(WrittenFiles, TakesWhatIsInTheOutputs) {
  EXPECT_THAT(taken({"checkpoints", "logs/*.txt"}, {"checkpoints/a b/1.pt", "logs/1.txt", "logs/d.txt/x"}),
              ElementsAre("checkpoints/a b/1.pt", "logs/1.txt", "logs/d.txt/x"));
}

TEST(WrittenFiles, WhatCouldBringTroubleHereIsLeftOutAndTheRestTaken) {
  EXPECT_THAT(taken({"checkpoints"}, {"checkpoints/.git/hooks/x", "checkpoints/.Remote/configs.yaml",
                                      "checkpoints/a\x1b", "checkpoints/1.pt"}),
              ElementsAre("checkpoints/1.pt"));
  EXPECT_THROW(taken({"*"}, {".ssh/authorized_keys"}), Error);
}

TEST(WrittenFiles, AServerNamesNothingElse) {
  for (const char* name :
       {"", "x", "checkpoints/../x", "checkpoints/../../x", "../checkpoints/x", "/checkpoints/x",
        "checkpoints//x", "checkpoints/x/", "checkpoints/./x", ".", "..", "*"}) {
    EXPECT_THROW(taken({"checkpoints", "logs/*.txt"}, {name}), Error) << name;
  }
  EXPECT_THROW(taken({"x"}, std::vector<std::string>(100001, "x")), Error);
}

TEST(WrittenFiles, CountsSkippedFiles) {
  servers::WrittenFiles written({"x"});
  written.take({{"x/a", 1, 2}, {"x/line\nbreak", 1, 2}, {"x/.git/config", 1, 2}});
  EXPECT_EQ(written.odd, 2);
  EXPECT_EQ(written.files.size(), 1U);
}

std::vector<std::string> complete(const config::Checkpoint& checkpoint, std::vector<WrittenFile> files,
                                  std::vector<std::string>& waiting) {
  std::vector<std::string> found;
  for (const WrittenFile& file : servers::complete_files(std::move(files), checkpoint, waiting)) {
    found.push_back(file.name);
  }
  return found;
}

TEST(Checkpoints, CountOnlyWhenTheyAreComplete) {
  std::vector<std::string> waiting;
  const std::vector<WrittenFile> files = {
      {"c/ckpt-1.done", 10, 0}, {"c/ckpt-1.pt", 10, 5}, {"c/ckpt-2.pt", 10, 5}, {"d/ckpt-1.pt", 10, 5},
      {"c/ckpt-3.done", 9, 0},  {"c/ckpt-3.pt", 10, 5}, {"c/log.txt", 10, 5},   {"ckpt-.pt", 10, 5}};
  EXPECT_THAT(complete({"ckpt-*.pt", "ckpt-*.done"}, files, waiting),
              ElementsAre("c/ckpt-1.done", "c/ckpt-1.pt", "c/ckpt-3.done", "c/log.txt"));
  EXPECT_THAT(waiting, ElementsAre("c/ckpt-2.pt", "d/ckpt-1.pt", "c/ckpt-3.pt", "ckpt-.pt"));
}

TEST(Checkpoints, MayBeFolders) {
  std::vector<std::string> waiting;
  const std::vector<WrittenFile> files = {{"out/step-1/a/model", 10, 5},
                                          {"out/step-1/state", 11, 5},
                                          {"out/step-2/model", 10, 5},
                                          {"out/step-3", 10, 5}};
  EXPECT_THAT(complete({"step-*/", "step-*/state"}, files, waiting),
              ElementsAre("out/step-1/a/model", "out/step-1/state", "out/step-3"));
  EXPECT_THAT(waiting, ElementsAre("out/step-2/model"));
  waiting.clear();
  EXPECT_THAT(complete({"step-*/", "all-done"}, {{"step-1/x", 1, 1}, {"all-done", 1, 0}}, waiting),
              ElementsAre("step-1/x", "all-done"));
}

}  // namespace
}  // namespace remote
