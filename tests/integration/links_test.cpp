// Which links lead out of the project. The user is not asked about other links.

#include "servers/links.hpp"

#include <gmock/gmock.h>

#include "base/files.hpp"

namespace remote::servers {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;

class OutsideLinks : public ::testing::Test {
 protected:
  OutsideLinks() {
    make_folders(project() / "src");
    make_folders(temp_.path() / "data/deep");
    write_file_atomic(project() / "train.py", "");
    write_file_atomic(temp_.path() / "notes", "mine");
    config_.project = project();
  }
  fs::path project() const { return temp_.path() / "project"; }
  std::vector<std::string> find(bool are_allowed) const {
    std::vector<std::string> names;
    const auto allowed = [are_allowed](const OutsideLink&) { return are_allowed; };
    for (const OutsideLink& link : outside_links(config_, allowed, Cancel())) {
      EXPECT_EQ(link.why, LinkLeftOut::Why::not_allowed) << link.name;
      names.push_back(link.name);
    }
    return names;
  }

  const TempFolder temp_;
  config::Config config_;
};

TEST_F(OutsideLinks, ToAFile) {
  fs::create_symlink("train.py", project() / "same.py");
  EXPECT_THAT(find(false), ElementsAre());
  fs::create_symlink(temp_.path() / "notes", project() / "notes");
  EXPECT_THAT(find(false), ElementsAre("notes"));
}

TEST_F(OutsideLinks, ToAFolderWithLinks) {
  fs::create_symlink("../../data", project() / "src/data");
  fs::create_symlink(temp_.path() / "notes", temp_.path() / "data/deep/notes");
  EXPECT_THAT(find(false), ElementsAre("src/data"));
  EXPECT_THAT(find(true), ElementsAre("src/data", "src/data/deep/notes"));
}

}  // namespace
}  // namespace remote::servers
