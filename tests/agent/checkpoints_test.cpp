#include "agent/launch/checkpoints.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include "agent/host_folder.hpp"
#include "wire/link.hpp"

namespace remote::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Checkpoints, TheMarkerHasTheSameTextAsTheCheckpoint) {
  EXPECT_EQ(find_marker("e3.pt", "e*.pt", "e*.done"), "e3.done");
  EXPECT_EQ(find_marker("e3.pt", "e*.pt", "*"), "3");
  EXPECT_EQ(find_marker("e3.pt", "e*.pt", "done"), "done");
  EXPECT_EQ(find_marker("e3.pt", "e*.pt", "*/e*.done"), "3/e*.done") << "the first one";
  EXPECT_EQ(find_marker("step-7", "step-*", "step-*/.ok"), "step-7/.ok");
  EXPECT_EQ(find_marker("e.pt", "e*.pt", "*.ok"), ".ok");
  EXPECT_EQ(find_marker("a*b.pt", "a*.pt", "*"), "*b");
  EXPECT_EQ(find_marker("last.pt", "last.pt", "ok"), "ok");
  EXPECT_EQ(find_marker("x.pt", "last.pt", "ok"), "");
  EXPECT_EQ(find_marker("f3.pt", "e*.pt", "*.ok"), "");
  EXPECT_EQ(find_marker("e3.px", "e*.pt", "*.ok"), "");
  EXPECT_EQ(find_marker("ab", "ab*b", "*.ok"), "") << "the two ends overlap";
}

wire::RestartSpec make_checkpoint_spec(const std::string& files, const std::string& complete,
                                       std::vector<std::string> folders = {}) {
  wire::RestartSpec spec;
  spec.checkpoint_files = files;
  spec.checkpoint_complete = complete;
  spec.checkpoint_folders = std::move(folders);
  return spec;
}

class CheckpointFiles : public ::testing::Test {
 protected:
  // A file with this modification time.
  void put(const std::string& name, int seconds, const std::string& text = "") const {
    const fs::path path = folder.path() / name;
    test::HostFolder::put(path, text);
    set_time(name, seconds);
  }
  void set_time(const std::string& name, int seconds) const {
    const timespec time{1'700'000'000 + seconds, 0};
    const timespec times[2] = {time, time};
    ASSERT_EQ(::utimensat(AT_FDCWD, (folder.path() / name).c_str(), times, 0), 0);
  }
  std::vector<std::string> find() const { return find_checkpoints(folder.path(), spec); }

  test::HostFolder folder;
  wire::RestartSpec spec = make_checkpoint_spec("e*.pt", "e*.done");
};

TEST_F(CheckpointFiles, CompleteOnesAreFoundTheNewestFirst) {
  EXPECT_THAT(find(), IsEmpty());
  for (const auto& [name, time] : std::map<std::string, int>{{"e1", 30}, {"e2", 10}, {"e3", 20}}) {
    put(name + ".done", time);
    put(name + ".pt", 100 - time);
  }
  put("e4.pt", 99);
  put("e5.done", 99);
  put("f6.pt", 99);
  put("f6.done", 99);
  EXPECT_THAT(find(), ElementsAre("e1.pt", "e3.pt", "e2.pt")) << "the time is the marker's";
  put("e3.done", 30);
  EXPECT_THAT(find(), ElementsAre("e3.pt", "e1.pt", "e2.pt")) << "the last name first";
  spec.checkpoint_complete = "";
  EXPECT_THAT(find(), IsEmpty());
  spec = {};
  EXPECT_THAT(find(), IsEmpty());
}

TEST_F(CheckpointFiles, FoldersAreSearchedToo) {
  spec.checkpoint_folders = {"out", "runs/*/ckpt", "missing", "./out2//", "file.txt"};
  int time = 0;
  for (const char* name : {"e0", "out/e1", "runs/a/ckpt/e2", "runs/b/ckpt/e3", "out2/e4"}) {
    put(std::string(name) + ".done", ++time);
    put(std::string(name) + ".pt", 0);
  }
  for (const char* name :
       {"other/e9", "runs/a/e9", "runs/a/ckpt/deep/e9", "runs/.c/ckpt/e9", ".e9", "out/.e9"}) {
    put(std::string(name) + ".done", 50);
    put(std::string(name) + ".pt", 50);
  }
  put("file.txt", 0);
  EXPECT_THAT(find(),
              ElementsAre("out2/e4.pt", "runs/b/ckpt/e3.pt", "runs/a/ckpt/e2.pt", "out/e1.pt", "e0.pt"));
}

TEST_F(CheckpointFiles, HiddenNamesNeedAHiddenPattern) {
  spec = make_checkpoint_spec(".e*", "ok*", {".cache", ".h*"});
  put(".e1", 0);
  put("ok1", 1);
  put(".cache/.e2", 0);
  put(".cache/ok2", 2);
  put(".hidden/.e3", 0);
  put(".hidden/ok3", 3);
  EXPECT_THAT(find(), ElementsAre(".hidden/.e3", ".cache/.e2", ".e1"));
}

TEST_F(CheckpointFiles, PatternsMatchAsGlobDoes) {
  spec.checkpoint_folders = {"r?n-[0-3]", "[x"};
  put("ran-2/e1.pt", 0);
  put("ran-2/e1.done", 1);
  put("ran-4/e2.pt", 0);
  put("ran-4/e2.done", 2);
  put("[x/e3.pt", 0);
  put("[x/e3.done", 3);
  EXPECT_THAT(find(), ElementsAre("[x/e3.pt", "ran-2/e1.pt"));
  // The project's own name is not a pattern.
  const fs::path odd = folder.path() / "[a-c]*";
  test::HostFolder::put(odd / "e1.pt", "");
  test::HostFolder::put(odd / "e1.done", "");
  EXPECT_THAT(find_checkpoints(odd, spec), ElementsAre("e1.pt"));
}

TEST_F(CheckpointFiles, ACheckpointCanBeAFolderOrALink) {
  spec = make_checkpoint_spec("step-*/", "step-*/.complete", {"link"});
  put("step-7/.complete", 1);
  put("step-8/data", 2);
  EXPECT_THAT(find(), ElementsAre("step-7"));
  put("real/step-9/.complete", 3);
  fs::create_symlink(folder.path() / "real", folder.path() / "link");
  EXPECT_THAT(find(), ElementsAre("link/step-9", "step-7"));
  spec = make_checkpoint_spec("e*.pt", "e*.done");
  fs::create_symlink("nowhere", folder.path() / "e1.pt");
  put("e1.done", 1);
  fs::create_symlink("nowhere", folder.path() / "e2.done");
  put("e2.pt", 1);
  EXPECT_THAT(find(), ElementsAre("e1.pt")) << "a link without a target matches, but marks nothing";
}

TEST_F(CheckpointFiles, OtherFoldersAreNotSearched) {
  put("proj/e1.pt", 0);
  put("proj/e1.done", 1);
  put("e2.pt", 0);
  put("e2.done", 2);
  put("proj/out/e3.pt", 0);
  put("proj/out/e3.done", 3);
  spec.checkpoint_folders = {"..", "x/../..", folder.path().string(), "/out"};
  EXPECT_THAT(find_checkpoints(folder.path() / "proj", spec), ElementsAre("e1.pt"));
  spec.checkpoint_files = "../e*.pt";
  EXPECT_THAT(find_checkpoints(folder.path() / "proj", spec), IsEmpty());
}

TEST_F(CheckpointFiles, NamesKeepTheirCharacters) {
  const std::string long_name = std::string(250, 'x') + "/";
  spec = make_checkpoint_spec("*.pt", "*.pt", {"*", "*/*/*/*/*"});
  int time = 0;
  for (const char* name : {"%2F.pt", "a b/100%=x.pt", "é 漢字.pt", "-.pt", "x:y,z'\"$(id).pt", "\ttab.pt"}) {
    put(name, ++time);
  }
  put("new\nline.pt", 90);
  put("new\nfolder/e.pt", 90);
  put("\xff.pt", 90);
  put(long_name + long_name + long_name + long_name + std::string(230, 'x') + "/e.pt", 90);
  EXPECT_THAT(find(),
              ElementsAre("\ttab.pt", "x:y,z'\"$(id).pt", "-.pt", "é 漢字.pt", "a b/100%=x.pt", "%2F.pt"));
}

TEST_F(CheckpointFiles, AMessageHasRoomForThem) {
  for (int i = 0; i < 20; ++i) {
    put("e" + std::to_string(i) + ".done", i);
    put("e" + std::to_string(i) + ".pt", 0);
  }
  EXPECT_EQ(find().size(), wire::max_checkpoints);
  EXPECT_EQ(find().front(), "e19.pt");
  const std::string deep = std::string(250, 'a') + "/" + std::string(250, 'b') + "/" + std::string(250, 'c') +
                           "/" + std::string(250, 'd');
  spec.checkpoint_folders = {"*/*/*/" + std::string(250, 'd')};
  for (int i = 0; i < 20; ++i) {
    const std::string name = deep + "/e" + std::string(150, 'x') + std::to_string(i);
    put(name + ".done", 100 + i);
    put(name + ".pt", 0);
  }
  std::size_t bytes = 0;
  for (const std::string& name : find()) {
    EXPECT_LE(name.size(), wire::max_checkpoint_name);
    bytes += name.size();
  }
  EXPECT_EQ(find().size(), 6U);
  EXPECT_LE(bytes, 8000U);
}

}  // namespace
}  // namespace remote::agent
