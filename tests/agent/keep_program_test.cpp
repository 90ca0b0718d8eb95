#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/fake_host.hpp"
#include "agent/host/files.hpp"
#include "agent/host/run.hpp"
#include "agent/job/answers.hpp"
#include "agent/job/job_spec.hpp"

namespace remote::agent {
namespace {

using std::chrono::hours;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;
using ::testing::UnorderedElementsAre;

constexpr fs::perms others_write = fs::perms::group_write | fs::perms::others_write;

class KeepProgram : public testing::Test, protected test::FakeHost {
 protected:
  KeepProgram() {
    put(root() / "proc/self/exe", std::string("program\0 of many bytes", 22));
    archive = make_archive({{"lib/job.sh", "the text of lib/job.sh\n"}, {"python/tree.py", "pass\n"}});
  }

  fs::path project() const { return home() / "my proj"; }
  fs::path jobs() const { return project() / ".jobs"; }
  fs::path bin() const { return jobs() / ".bin"; }
  fs::path copy() const { return bin() / program.digest; }
  std::string file(const std::string& name) const { return read_file(Path(copy() / name)).value_or("none"); }

  // Makes an archive of these files and sets program.size.
  std::string make_archive(const std::map<std::string, std::string>& files) {
    const fs::path from = folder() / "program";
    fs::remove_all(from);
    program.size = 0;
    for (const auto& [name, text] : files) {
      put(from / name, text);
      fs::permissions(from / name, others_write, fs::perm_options::add);
      program.size += text.size();
    }
    const RunResult tar = run(Host::of_this_process(),
                              {.argv = {"sh", "-c", "cd \"$1\" && tar -cf - * | gzip -9nc", "sh", from}});
    EXPECT_TRUE(tar.succeeded());
    return tar.out;
  }

  bool is_missing(const std::string& data = "") {
    return keep_program(host, {.place = {"~/my proj", ".jobs"}, .program = program}, data).is_missing;
  }
  void keep() { EXPECT_FALSE(is_missing(archive)); }
  std::string refusal(const std::string& data) {
    try {
      is_missing(data);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "none";
  }
  void expect_complete() const {
    EXPECT_EQ(file("lib/job.sh"), "the text of lib/job.sh\n");
    EXPECT_EQ(file("python/tree.py"), "pass\n");
    EXPECT_EQ(file("remote-agent"), std::string("program\0 of many bytes", 22));
    EXPECT_FALSE(fs::is_symlink(copy()));
    for (const auto& entry : fs::recursive_directory_iterator(bin())) {
      EXPECT_FALSE(entry.is_symlink()) << entry.path();
      EXPECT_EQ(entry.status().permissions() & others_write, fs::perms::none) << entry.path();
    }
  }
  std::vector<std::string> names() const { return list_names(Path(bin())); }

  wire::ServerProgram program{"digest1", 0};
  std::string archive;
};

TEST_F(KeepProgram, IsMissingWithoutItsArchive) {
  EXPECT_TRUE(is_missing());
  EXPECT_TRUE(fs::is_empty(bin()));
  EXPECT_EQ(fs::status(bin()).permissions() & others_write, fs::perms::none);
}

TEST_F(KeepProgram, IsUnpackedWithTheAgentBesideIt) {
  keep();
  expect_complete();
  EXPECT_THAT(names(), UnorderedElementsAre("digest1"));
  EXPECT_EQ(fs::status(copy()).permissions(), fs::perms::owner_all);
  EXPECT_EQ(fs::status(copy() / "remote-agent").permissions(), fs::perms::owner_all);
  EXPECT_TRUE(fs::exists(copy() / "used"));
  EXPECT_FALSE(is_missing());
  keep();
  expect_complete();
  EXPECT_THAT(names(), UnorderedElementsAre("digest1"));
}

TEST_F(KeepProgram, NotesWhenItWasUsedLast) {
  keep();
  fs::last_write_time(copy() / "used", fs::file_time_type::clock::now() - hours(50));
  EXPECT_FALSE(is_missing());
  EXPECT_GT(fs::last_write_time(copy() / "used"), fs::file_time_type::clock::now() - hours(1));
}

// The folders must be accessible with any umask of the account.
TEST_F(KeepProgram, NoUmaskLocksTheAccountOut) {
  const mode_t before = ::umask(0777);
  const std::string reason = refusal(archive);
  ::umask(before);
  EXPECT_EQ(reason, "none");
  for (const fs::path& path : {project(), jobs(), bin(), copy(), copy() / "lib"}) {
    EXPECT_EQ(fs::status(path).permissions() & fs::perms::owner_all, fs::perms::owner_all) << path;
  }
  EXPECT_EQ(file("lib/job.sh"), "the text of lib/job.sh\n");
}

TEST_F(KeepProgram, OthersMayNotWriteWhateverTheUmask) {
  const mode_t before = ::umask(0);
  keep();
  ::umask(before);
  expect_complete();
  for (const fs::path& path : {jobs(), bin(), copy()}) {
    EXPECT_EQ(fs::status(path).permissions() & others_write, fs::perms::none) << path;
  }
}

TEST_F(KeepProgram, ReplacesADamagedCopy) {
  const auto expect_replaced = [&](const char* what, const std::function<void()>& damage) {
    SCOPED_TRACE(what);
    keep();
    damage();
    EXPECT_TRUE(is_missing());
    keep();
    expect_complete();
    EXPECT_THAT(names(), UnorderedElementsAre("digest1"));
  };
  const fs::path script = copy() / "lib/job.sh";
  expect_replaced("a shorter file", [&] { put(script, "the text"); });
  expect_replaced("a file less", [&] { fs::remove(script); });
  expect_replaced("a folder less", [&] { fs::remove_all(copy() / "python"); });
  expect_replaced("a file that others may write",
                  [&] { fs::permissions(script, fs::perms::others_write, fs::perm_options::add); });
  expect_replaced("a file that the group may write",
                  [&] { fs::permissions(script, fs::perms::group_write, fs::perm_options::add); });
  expect_replaced("a folder that others may write",
                  [&] { fs::permissions(copy() / "lib", fs::perms::others_write, fs::perm_options::add); });
  expect_replaced("a copy that others may write",
                  [&] { fs::permissions(copy(), fs::perms::group_write, fs::perm_options::add); });
  expect_replaced("a link to a file", [&] {
    fs::rename(script, folder() / "job.sh");
    fs::create_symlink(folder() / "job.sh", script);
  });
  EXPECT_EQ(read_file(Path(folder() / "job.sh")), "the text of lib/job.sh\n");
  expect_replaced("a link to a folder", [&] {
    fs::rename(copy() / "lib", folder() / "lib");
    fs::create_symlink(folder() / "lib", copy() / "lib");
  });
  EXPECT_TRUE(fs::exists(folder() / "lib/job.sh"));
  expect_replaced("a link to a copy", [&] {
    fs::rename(copy(), folder() / "elsewhere");
    fs::create_symlink(folder() / "elsewhere", copy());
  });
  EXPECT_TRUE(fs::exists(folder() / "elsewhere/lib/job.sh"));
  expect_replaced("a file in its place", [&] {
    fs::remove_all(copy());
    put(copy(), "x");
  });
  if (::geteuid() == 0) {
    expect_replaced("another user's file", [&] { ASSERT_EQ(::chown(script.c_str(), 65534, 65534), 0); });
    expect_replaced("another user's copy", [&] { ASSERT_EQ(::chown(copy().c_str(), 65534, 65534), 0); });
  }
}

TEST_F(KeepProgram, TakesTheRightToWriteFromOthers) {
  keep();
  for (const fs::path& path : {jobs(), bin()}) {
    fs::permissions(path, others_write, fs::perm_options::add);
  }
  keep();
  expect_complete();
  for (const fs::path& path : {jobs(), bin()}) {
    EXPECT_EQ(fs::status(path).permissions() & others_write, fs::perms::none) << path;
  }
}

TEST_F(KeepProgram, RefusesFoldersOfOthers) {
  keep();
  fs::rename(bin(), folder() / "elsewhere");
  fs::create_symlink(folder() / "elsewhere", bin());
  EXPECT_EQ(refusal(archive),
            bin().string() + " is a symbolic link, and programs are run from it: remove it");
  fs::remove(bin());
  fs::rename(folder() / "elsewhere", bin());
  if (::geteuid() != 0) {
    GTEST_SKIP() << "needs root to make folders of another user";
  }
  for (const fs::path& path : {bin(), jobs()}) {
    ASSERT_EQ(::chown(path.c_str(), 65534, 65534), 0);
    EXPECT_EQ(refusal(archive),
              path.string() +
                  " belongs to another user, who could change what runs from it; remove it, or use another "
                  "folder");
    ASSERT_EQ(::chown(path.c_str(), ::geteuid(), ::getegid()), 0);
  }
  keep();
}

TEST_F(KeepProgram, AWrongArchiveLeavesNothing) {
  const std::string cannot_write =
      "cannot write in " + jobs().string() + ": no permission, or the disk is full";
  EXPECT_EQ(refusal("rubbish"), cannot_write);
  EXPECT_EQ(refusal(archive.substr(0, archive.size() / 2)), cannot_write);
  EXPECT_TRUE(fs::is_empty(bin()));
  program.size += 1;
  EXPECT_EQ(refusal(archive), "other users may change the programs in " + bin().string() +
                                  ": check their owner and permissions");
}

TEST_F(KeepProgram, NamesTheFolderThatCannotBeMade) {
  put(project(), "a file");
  EXPECT_EQ(refusal(archive), "cannot make the folder " + project().string());
  fs::remove(project());
  put(jobs(), "a file");
  EXPECT_EQ(refusal(archive), "cannot write in " + jobs().string() + ": no permission, or the disk is full");
  fs::remove(jobs());
  put(bin(), "a file");
  EXPECT_EQ(refusal(archive), "cannot write in " + jobs().string() + ": no permission, or the disk is full");
}

// Processes of its build may still start it.
TEST_F(KeepProgram, TheAgentOfABuildIsNotReplaced) {
  keep();
  put(root() / "proc/self/exe", "another program");
  EXPECT_FALSE(is_missing());
  expect_complete();
  program.digest = "digest2";
  keep();
  EXPECT_EQ(file("remote-agent"), "another program");
  EXPECT_EQ(fs::status(copy() / "remote-agent").permissions(), fs::perms::owner_all);
  EXPECT_THAT(names(), UnorderedElementsAre("digest1", "digest2"));
  program.digest = "digest1";
  expect_complete();
  fs::remove(copy() / "remote-agent");
  EXPECT_FALSE(is_missing());
  EXPECT_EQ(file("remote-agent"), "another program") << "there is no other";
}

TEST_F(KeepProgram, ThatHasNoPlaceForTheAgentIsAnError) {
  keep();
  fs::remove(copy() / "remote-agent");
  fs::create_directories(copy() / "remote-agent/x");
  EXPECT_THAT(refusal(archive), HasSubstr("no permission, or the disk is full"));
}

TEST_F(KeepProgram, RemovesCopiesThatNothingUses) {
  const auto now = fs::file_time_type::clock::now();
  for (const auto& [name, age] :
       {std::pair{"old", hours(24 * 40)}, {"named", hours(24 * 40)}, {"young", hours(24 * 20)}}) {
    put(bin() / name / "lib/job.sh", "");
    put(bin() / name / "used", "");
    fs::last_write_time(bin() / name / "used", now - age);
  }
  put(bin() / "strange/file", "");
  for (const auto& [letter, digest] : {std::pair{'a', "named"}, {'b', "other"}}) {
    const fs::path job = jobs() / std::string(32, letter);
    fs::create_directories(job);
    ASSERT_TRUE(create_spec(Path(job), {.program = digest}));
  }
  EXPECT_TRUE(is_missing());
  EXPECT_TRUE(fs::exists(bin() / "old"));
  keep();
  EXPECT_THAT(names(), UnorderedElementsAre("digest1", "named", "strange", "young"));
  expect_complete();
}

TEST_F(KeepProgram, SeveralClientsAtOnce) {
  std::vector<std::thread> clients;
  for (int i = 0; i < 6; ++i) {
    clients.emplace_back([this] { keep(); });
  }
  std::ranges::for_each(clients, &std::thread::join);
  expect_complete();
  EXPECT_THAT(names(), UnorderedElementsAre("digest1"));
}

TEST_F(KeepProgram, ALostClientDoesNotStopItHalfWay) {
  *host.cancelled = true;
  keep();
  expect_complete();
}

TEST_F(KeepProgram, ADigestIsTheNameOfAFolder) {
  keep();
  put(bin() / "other/file", "x");
  const std::string digest = std::exchange(program.digest, "");
  EXPECT_NE(refusal(archive), "none");
  EXPECT_TRUE(fs::exists(bin() / "other/file"));
  program.digest = digest;
  expect_complete();
}

}  // namespace
}  // namespace remote::agent
