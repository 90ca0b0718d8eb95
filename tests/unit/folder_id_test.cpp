#include "config/folder_id.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/files.hpp"
#include "base/paths.hpp"
#include "support/paths.hpp"

namespace remote::test {
namespace {

namespace fs = std::filesystem;

class FolderId : public ::testing::Test {
 protected:
  fs::path make(const std::string& name) const {
    make_folders(temp_.path() / name / ".remote");
    return temp_.path() / name;
  }
  static std::string id_of(const fs::path& project) {
    config::Config config;
    config.project = project;
    return config::find_folder_id(config);
  }
  TempFolder temp_;
};

TEST_F(FolderId, StaysTheSame) {
  const fs::path folder = make("one");
  const std::string id = id_of(folder);
  EXPECT_EQ(id.size(), 32U);
  EXPECT_EQ(id_of(folder), id);
  fs::create_symlink(folder, temp_.path() / "link");
  EXPECT_EQ(id_of(temp_.path() / "link"), id);
}

TEST_F(FolderId, MovesWithTheFolder) {
  const std::string id = id_of(make("one"));
  fs::rename(temp_.path() / "one", temp_.path() / "two");
  EXPECT_EQ(id_of(temp_.path() / "two"), id);
}

TEST_F(FolderId, ACopyHasItsOwn) {
  const fs::path folder = make("one");
  const std::string id = id_of(folder);
  fs::copy(folder, temp_.path() / "two", fs::copy_options::recursive);
  const std::string other = id_of(temp_.path() / "two");
  EXPECT_NE(other, id);
  EXPECT_EQ(id_of(temp_.path() / "two"), other);
  EXPECT_EQ(id_of(folder), id);
}

// Otherwise `rsync --delete` from a copy would remove files of its original.
TEST_F(FolderId, ACopyForgetsWhatItsOriginalHasSent) {
  const fs::path folder = make("one");
  const std::string id = id_of(folder);
  const std::vector<std::string> of_servers{"gpu1", ".state.gpu1", ".gone.gpu1", ".unfinished.gpu1"};
  const std::vector<std::string> others{".tree.0123abcd", ".pulled", ".shared"};
  for (const auto* names : {&of_servers, &others}) {
    for (const std::string& name : *names) {
      write_file_atomic(folder / ".remote/sent" / name, "x");
    }
  }
  fs::copy(folder, temp_.path() / "two", fs::copy_options::recursive);
  fs::rename(folder, temp_.path() / "moved");
  EXPECT_NE(id_of(temp_.path() / "two"), id);
  EXPECT_EQ(id_of(temp_.path() / "moved"), id);
  for (const std::string& name : of_servers) {
    EXPECT_FALSE(is_there(temp_.path() / "two/.remote/sent" / name)) << name;
    EXPECT_TRUE(is_there(temp_.path() / "moved/.remote/sent" / name)) << name;
  }
  for (const std::string& name : others) {
    EXPECT_TRUE(is_there(temp_.path() / "two/.remote/sent" / name)) << name;
  }
}

TEST_F(FolderId, IsEmptyWithoutAProject) {
  EXPECT_EQ(id_of(temp_.path() / "nowhere"), "");
}

TEST_F(FolderId, AFileOfSomethingElseIsReplaced) {
  const fs::path folder = make("one");
  make_folders(folder / ".remote/sent");
  write_file_atomic(folder / ".remote/sent/.folder", "../../x");
  EXPECT_EQ(id_of(folder).size(), 32U);
}

}  // namespace
}  // namespace remote::test
