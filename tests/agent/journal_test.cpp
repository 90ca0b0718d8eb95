#include "agent/job/journal.hpp"

#include <optional>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/host/descriptor.hpp"
#include "agent/job/json_lines.hpp"
#include "agent/job/second_place.hpp"
#include "agent/job_journal.hpp"
#include "agent/local_jobs.hpp"
#include "agent/started.hpp"

namespace remote::agent {
namespace {

using std::chrono::milliseconds;

class JournalTest : public testing::Test, protected test::LocalJobs {
 protected:
  const std::string id = make({{"spec.json", ""}});
  const Path job = folder(id).string();
  const wire::JobEnded exit_3{
      {.how = wire::ProcessEnd::exited(3), .at = milliseconds(5), .by = "supervisor"}};

  std::optional<wire::ProcessEnd> read_how() const {
    const auto end = read_own_history(job).end;
    return end ? std::optional(end->how) : std::nullopt;
  }
};

TEST_F(JournalTest, KeepsItsEntries) {
  EXPECT_TRUE(append_to_journal(job, wire::JobStarted{milliseconds(4)}));
  EXPECT_TRUE(append_to_journal(job, exit_3));
  EXPECT_EQ(read_own_history(job).started_at, milliseconds(4));
  EXPECT_EQ(read_how(), wire::ProcessEnd::exited(3));
  struct stat info {};
  ASSERT_EQ(::stat((job / journal_name).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0600U);
  EXPECT_FALSE(append_to_journal(job / "missing", exit_3));
}

TEST_F(JournalTest, SkipsDamagedAndUnknownLines) {
  const std::string line = test::format_entry(exit_3);
  put(id, "journal.jsonl", "\nx\n{\"kind\":\"later\",\"at\":1}\n\0\0\n" + line.substr(0, line.size() - 1));
  EXPECT_FALSE(read_how()) << "an incomplete line";
  EXPECT_TRUE(append_to_journal(job, wire::JobStarted{milliseconds(4)}));
  EXPECT_EQ(read_how(), wire::ProcessEnd::exited(3)) << "now it is followed by another one";
  EXPECT_EQ(read_own_history(job).started_at, milliseconds(4));
}

TEST_F(JournalTest, IsARegularFile) {
  ASSERT_EQ(::mkfifo((job / journal_name).c_str(), 0600), 0);
  EXPECT_FALSE(append_to_journal(job, exit_3));
  EXPECT_FALSE(read_how());
  ::unlink((job / journal_name).c_str());
  put(id, "other", "");
  fs::create_symlink("other", folder(id) / "journal.jsonl");
  EXPECT_FALSE(append_to_journal(job, exit_3));
  EXPECT_EQ(read(id, "other"), "");
}

TEST_F(JournalTest, TheFallbackFolderIsUsedIfNecessary) {
  fs::create_directory(folder(id) / "journal.jsonl");
  EXPECT_TRUE(append_safely(host(), job, id, exit_3));
  EXPECT_FALSE(read_how());
  EXPECT_EQ(read_history(host(), job, id).end->how, wire::ProcessEnd::exited(3));
  EXPECT_FALSE(restore_journal(host(), job, id)) << "it is still not writable";
  fs::remove(folder(id) / "journal.jsonl");
  EXPECT_TRUE(restore_journal(host(), job, id));
  EXPECT_EQ(read_how(), wire::ProcessEnd::exited(3));
  remove_second_journal(host(), id);
  EXPECT_FALSE(restore_journal(host(), job, id)) << "there is nothing to restore";
  const std::string removed = new_id();
  EXPECT_FALSE(append_safely(host(), folder(removed).string(), removed, exit_3)) << "there is no such job";
}

TEST_F(JournalTest, ManyProcessesAppendAtTheSameTime) {
  constexpr int count = 200;
  {
    std::vector<test::Started> writers;
    for (int i = 0; i < 4; ++i) {
      writers.emplace_back([&, i] {
        for (int attempt = 0; attempt < count; ++attempt) {
          append_to_journal(job, wire::AttemptEnded{i * count + attempt, exit_3.end});
        }
        ::_exit(0);
      });
    }
    for (test::Started& writer : writers) {
      EXPECT_EQ(writer.wait(), 0);
    }
  }
  EXPECT_EQ(read_json_lines<wire::JobEntry>(job / journal_name).size(), 4U * count);
}

// Another writer is stopped with SIGSTOP.
TEST_F(JournalTest, ALockThatIsNotReleasedDelaysOnly) {
  append_to_journal(job, wire::JobStarted{milliseconds(4)});
  const Descriptor other(::open((job / journal_name).c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(::flock(other.get(), LOCK_EX), 0);
  const auto begin = read_boot_clock();
  EXPECT_TRUE(append_to_journal(job, exit_3));
  EXPECT_LT(read_boot_clock() - begin, test::patience);
  EXPECT_EQ(read_how(), wire::ProcessEnd::exited(3));
}

TEST_F(JournalTest, EntriesAfterTheEndKeepItsTime) {
  append_to_journal(job, exit_3);
  const fs::path path = folder(id) / "journal.jsonl";
  const auto time = fs::file_time_type::clock::now() - std::chrono::hours(1);
  fs::last_write_time(path, time);
  {
    const KeptJournalTime kept(job);
    append_to_journal(job, wire::OutOfMemory{});
  }
  EXPECT_EQ(fs::last_write_time(path), time);
  EXPECT_TRUE(read_own_history(job).was_out_of_memory);
  append_to_journal(job, wire::OutOfMemory{});
  EXPECT_GT(fs::last_write_time(path), time);
}

TEST_F(JournalTest, RestoredEntriesKeepTheTimeOfTheEnd) {
  append_to_journal(job, exit_3);
  const fs::path path = folder(id) / "journal.jsonl";
  const auto time = fs::file_time_type::clock::now() - std::chrono::hours(1);
  fs::last_write_time(path, time);
  ASSERT_TRUE(append_to_second_journal(host(), id, test::format_entry(wire::OutOfMemory{})));
  EXPECT_TRUE(restore_journal(host(), job, id));
  remove_second_journal(host(), id);
  EXPECT_TRUE(read_own_history(job).was_out_of_memory);
  EXPECT_EQ(fs::last_write_time(path), time);
}

// In its own mount namespace, with a small file system that is full.
TEST_F(JournalTest, OnAFullDiskTheReservedSpaceIsUsed) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "needs root, to mount a file system";
  }
  constexpr int no_mount = 77;
  const auto run = [&](bool has_reserve, bool has_space_file) {
    return test::Started([&, has_reserve, has_space_file] {
             const std::string place = job.string();
             if (::unshare(CLONE_NEWNS) != 0 ||
                 ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
                 ::mount("none", place.c_str(), "tmpfs", 0, "size=64k") != 0) {
               ::_exit(no_mount);
             }
             if (has_reserve) {
               reserve_journal(job);
             }
             if (has_space_file) {
               write_job_file(job / ".space", std::string(4096, ' '), O_TRUNC);
             }
             while (write_job_file(job / "full", std::string(1024, 'x'), O_APPEND)) {
             }
             bool is_put = true;
             for (int i = 0; i < 20; ++i) {
               is_put = is_put && append_to_journal(job, exit_3);
             }
             ::_exit(is_put && read_own_history(job).end ? 7 : 1);
           })
        .wait();
  };
  const int status = run(true, false);
  if (status == no_mount) {
    GTEST_SKIP() << "this machine does not allow mounts";
  }
  EXPECT_EQ(status, 7);
  EXPECT_EQ(run(false, true), 7) << "as on a file system that cannot allocate beyond the end";
  EXPECT_EQ(run(false, false), 1);
}

}  // namespace
}  // namespace remote::agent
