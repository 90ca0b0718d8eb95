#include "base/beneath.hpp"

#include <gmock/gmock.h>
#include <remote/error.hpp>
#include <sys/stat.h>
#include <unistd.h>

namespace remote {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class Beneath : public ::testing::Test {
 protected:
  Beneath() {
    make_folders(folder_ / "sub/deep");
    write_file_atomic(folder_ / "file", "inside");
    write_file_atomic(folder_ / "sub/other", "other");
    write_file_atomic(temp_.path() / "secret", "secret");
  }
  void link(const fs::path& target, const fs::path& name) {
    fs::remove(folder_ / name);
    fs::create_symlink(target, folder_ / name);
  }
  std::optional<std::string> read(const fs::path& name) const { return read_beneath(folder_, name); }
  // The reason for the refusal; "" if the path is accepted.
  std::string reason(const fs::path& name) const {
    try {
      read(name);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage) << error.message();
      EXPECT_THAT(error.message(), HasSubstr((folder_ / name).string()));
      return error.reason();
    }
    return "";
  }

  TempFolder temp_;
  fs::path folder_ = temp_.path() / "project";
};

TEST_F(Beneath, ReadsFilesAndLinksInTheFolder) {
  EXPECT_EQ(read("file"), "inside");
  EXPECT_EQ(read("./sub/../sub/./other"), "other");
  EXPECT_EQ(read(folder_ / "sub/other"), "other");
  link("../file", "sub/up");
  EXPECT_EQ(read("sub/up"), "inside");
  link("sub/deep", "to_deep");
  link("../other", "sub/deep/back");
  EXPECT_EQ(read("to_deep/back"), "other") << "'..' is the real parent";
  link(folder_ / "sub/other", "absolute");
  EXPECT_EQ(read("absolute"), "other");
  link("absolute", "sub/../twice");
  EXPECT_EQ(read("twice"), "other");
  // The folder's own path may contain links.
  fs::create_directory_symlink(folder_, temp_.path() / "alias");
  EXPECT_EQ(read_beneath(temp_.path() / "alias", "absolute"), "other");
  EXPECT_EQ(read_beneath(temp_.path() / "alias", "sub/up"), "inside");
}

TEST_F(Beneath, WhatIsMissingIsNoError) {
  link("nowhere", "dangling");
  for (const char* name : {"none", "none/file", "file/none", "dangling", "sub/none"}) {
    EXPECT_EQ(read(name), std::nullopt) << name;
  }
  EXPECT_EQ(read_beneath(temp_.path() / "no such folder", "file"), std::nullopt);
}

TEST_F(Beneath, NothingOutsideIsRead) {
  link("../secret", "relative");
  link(temp_.path() / "secret", "absolute");
  link("..", "up");
  link("sub/deep/../../../secret", "dots");
  link("relative", "second");
  link("/", "root");
  link(temp_.path() / "project/../secret", "disguised");
  for (const char* name : {"relative", "absolute", "up/secret", "dots", "second", "root/etc/passwd",
                           "../secret", "sub/../../secret", "/etc/passwd", "disguised"}) {
    EXPECT_NE(reason(name), "") << name;
    EXPECT_THAT(reason(name), ::testing::Not(HasSubstr("secret\n"))) << name;
  }
}

TEST_F(Beneath, LinksDoNotLeadIntoSecretsOfTheProject) {
  for (const std::string kept : {".git", ".remote", ".Git"}) {
    make_folders(folder_ / kept);
    write_file_atomic(folder_ / kept / "config", "token");
    EXPECT_EQ(read(kept + "/config"), "token");
    link(kept + "/config", "link");
    EXPECT_THAT(reason("link"), HasSubstr("leads into '" + kept + "'"));
  }
}

TEST_F(Beneath, OnlyRegularFilesAreOpened) {
  ASSERT_EQ(::mkfifo((folder_ / "fifo").c_str(), 0600), 0);
  link("fifo", "to_fifo");
  EXPECT_THAT(reason("fifo"), HasSubstr("not a regular file"));
  EXPECT_THAT(reason("to_fifo"), HasSubstr("not a regular file"));
  for (const char* folder : {"sub", ".", "sub/.."}) {
    EXPECT_THAT(reason(folder), HasSubstr("it is a folder")) << folder;
  }
  link("circle", "circle");
  EXPECT_THROW(read("circle"), Error);
}

TEST_F(Beneath, ALargeFileIsRefusedAndNotReadToItsEnd) {
  EXPECT_EQ(read_beneath(folder_, "file", 6), "inside");
  EXPECT_THROW(read_beneath(folder_, "file", 5), Error);
  ASSERT_EQ(::truncate((folder_ / "file").c_str(), off_t{200} << 30U), 0);
  EXPECT_THAT(reason("file"), HasSubstr("larger than"));
}

TEST_F(Beneath, TheParentIsOpenedWithoutLinks) {
  EXPECT_TRUE(open_parent_beneath(folder_, "file"));
  EXPECT_TRUE(open_parent_beneath(folder_, "sub/deep/new"));
  link("sub", "to_sub");
  link("..", "up");
  for (const char* name :
       {"to_sub/other", "up/secret", "../secret", "sub/../../secret", "none/x", "/etc/passwd"}) {
    EXPECT_FALSE(open_parent_beneath(folder_, name)) << name;
  }
}

TEST(DecodeText, RemovesAMarkAndRefusesOtherEncodings) {
  EXPECT_EQ(decode_text("\xEF\xBB\xBF*.tmp\n", "f"), "*.tmp\n");
  EXPECT_EQ(decode_text("\xC3\xBC\n", "f"), "\xC3\xBC\n");
  EXPECT_EQ(decode_text("", "f"), "");
  for (const std::string& text :
       {std::string("\xFF\xFE*\0", 4), std::string("\xFE\xFF\0*", 4), std::string("*\0.\0", 4)}) {
    EXPECT_THROW(decode_text(text, "f"), Error);
  }
}

}  // namespace
}  // namespace remote
