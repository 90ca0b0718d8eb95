#include "project/submodules.hpp"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "base/files.hpp"

namespace remote::project {
namespace {

TEST(Submodules, TheEmptyOneWithTheMissingModuleIsNamed) {
  const TempFolder folder;
  const std::filesystem::path project = folder.path();
  EXPECT_EQ(find_empty_submodule(project, {"third"}), "");
  std::ofstream(project / ".gitmodules") << "[submodule \"third\"]\n\tpath = libs/third\n\turl = ../third\n"
                                            "[submodule \"full\"]\n\tpath = full\n";
  std::filesystem::create_directories(project / "libs/third");
  std::filesystem::create_directories(project / "full/code");
  EXPECT_EQ(find_empty_submodule(project, {"third", "third.py"}), "libs/third");
  EXPECT_EQ(find_empty_submodule(project, {"libs/third/data.json"}), "libs/third");
  EXPECT_EQ(find_empty_submodule(project, {"torch"}), "");
  EXPECT_EQ(find_empty_submodule(project, {"full"}), "");
}

TEST(Submodules, FilesOutsideTheProjectAreNotUsed) {
  const TempFolder folder;
  const std::filesystem::path project = folder.path() / "project";
  std::filesystem::create_directories(project);
  std::filesystem::create_directories(folder.path() / "third");
  std::ofstream(project / ".gitmodules")
      << "path = " << (folder.path() / "third").string() << "\npath = ../third\npath = libs/../../third\n";
  EXPECT_EQ(find_empty_submodule(project, {"third"}), "");
  std::filesystem::rename(project / ".gitmodules", folder.path() / "modules");
  std::ofstream(folder.path() / "modules") << "path = third\n";
  EXPECT_EQ(find_empty_submodule(project, {"third"}), "");
  std::filesystem::create_symlink("../modules", project / ".gitmodules");
  EXPECT_EQ(find_empty_submodule(project, {"third"}), "");
  EXPECT_EQ(find_empty_submodule(project, {}), "");
}

}  // namespace
}  // namespace remote::project
