// Files that git has not fetched here are listed before servers get the project without them.

#include <fstream>

#include "support/command_world.hpp"

namespace remote::test {
namespace {

class CommandUnfetched : public ::testing::Test {
 protected:
  void write_pointer(const std::string& name) const {
    std::ofstream(world.project() / name)
        << "version https://git-lfs.github.com/spec/v1\noid sha256:" << std::string(64, 'a')
        << "\nsize 1000000\n";
  }
  CommandWorld world;
};

TEST_F(CommandUnfetched, PointersOfGitLfsAreNamedOnce) {
  write_pointer("weights.pt");
  std::ofstream(world.project() / "notes.txt") << "version https://git-lfs is only mentioned\n";
  const std::string warning = "warning: 1 file is only a pointer of git-lfs (weights.pt): git lfs pull";
  EXPECT_THAT(world.run({"rsync"}), Ends(0, "", HasSubstr(warning)));
  EXPECT_THAT(world.run({"check"}).err, HasSubstr(warning));
  EXPECT_THAT(world.run({"launch", "--rsync", "--follow", "--", "true"}).err, HasSubstr(warning));
  write_pointer("a\nb.pt");
  for (const char* name : {"b.pt", "c.pt", "d.pt"}) {
    write_pointer(name);
  }
  EXPECT_THAT(world.run({"rsync"}).err,
              HasSubstr("4 files are only pointers of git-lfs (b.pt, c.pt, d.pt and 1 more): git lfs pull"));
}

TEST_F(CommandUnfetched, EmptySubmodulesAreNamed) {
  std::ofstream(world.project() / ".gitmodules")
      << "path = third\npath = full\npath = missing\npath = left\n";
  for (const char* folder : {"third", "full", "left"}) {
    fs::create_directories(world.project() / folder);
  }
  std::ofstream(world.project() / "full/code.py") << "pass\n";
  std::ofstream(world.project() / ".remote/exclude.txt", std::ios::app) << "left/\n";
  EXPECT_THAT(
      world.run({"rsync"}).err,
      HasSubstr("warning: 1 submodule is empty here (third): git submodule update --init --recursive"));
  EXPECT_THAT(world.run({"check"}).err, HasSubstr("(third)"));
}

TEST_F(CommandUnfetched, ACompleteProjectIsNotWarnedAbout) {
  std::ofstream(world.project() / "train.py") << "pass\n";
  EXPECT_THAT(world.run({"rsync"}).err, Not(HasSubstr("git")));
}

}  // namespace
}  // namespace remote::test
