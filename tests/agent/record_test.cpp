#include "agent/job/record.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "agent/job/second_place.hpp"
#include "agent/local_jobs.hpp"

namespace remote::agent {
namespace {

using std::chrono::milliseconds;
using ::testing::MatchesRegex;

class Record : public testing::Test, protected test::LocalJobs {
 protected:
  // As recorded for a rank.
  static std::optional<wire::JobEnd> end(const std::string& line) {
    const auto parsed = parse_end(line);
    return parsed ? std::optional(parsed->end) : std::nullopt;
  }
};

TEST_F(Record, HasWhatTheFolderSays) {
  const std::string id = make({{"supervisor", "12 345 boot 12\n"},
                               {"pid", "13 346\n"},
                               {"spec.json", ""},
                               {"journal.jsonl", test::format_end("signal 9 1700000000123 supervisor\n")}});
  const JobRecord job = record(id);
  EXPECT_EQ(job.id, id);
  EXPECT_EQ(job.folder, Path(folder(id)));
  EXPECT_EQ(job.backend, "local");
  ASSERT_TRUE(job.supervisor);
  EXPECT_EQ(job.supervisor->id, (ProcessId{12, 345}));
  EXPECT_EQ(job.supervisor->boot, "boot");
  EXPECT_TRUE(job.supervisor->has_session);
  EXPECT_EQ(job.main, (ProcessId{13, 346}));
  ASSERT_TRUE(job.end);
  EXPECT_EQ(job.end->how, wire::ProcessEnd::signalled(9));
  EXPECT_EQ(job.end->at, milliseconds(1700000000123));
  EXPECT_EQ(job.end->by, "supervisor");
  EXPECT_EQ(job.recorded.end->how, job.end->how);
  EXPECT_FALSE(job.is_claimed || job.never_started());
  EXPECT_TRUE(job.has_result());
}

TEST_F(Record, IsMissingWithoutAFolder) {
  EXPECT_FALSE(read_record(host(), jobs(), new_id()));
  EXPECT_FALSE(read_record(host(), jobs(), ".."));
  EXPECT_FALSE(read_record(host(), jobs(), ""));
  const std::string id = new_id();
  test::HostFolder::put(folder(id), "a file");
  EXPECT_FALSE(read_record(host(), jobs(), id));
}

TEST_F(Record, HalfWrittenFilesCountAsMissing) {
  const std::string whole = test::format_end("exit 0 1700000000123 supervisor");
  const std::string half = whole.substr(0, whole.size() - 1);
  for (const char* text : {"", "12 345 boot 12", "\n"}) {
    const JobRecord job = record(make({{"supervisor", text},
                                       {"pid", text},
                                       {"spec.json", ""},
                                       {"journal.jsonl", half},
                                       {"backend", "slu"}}));
    EXPECT_FALSE(job.supervisor);
    EXPECT_FALSE(job.main);
    EXPECT_FALSE(job.has_result());
    EXPECT_FALSE(job.is_claimed);
    EXPECT_EQ(job.backend, "local");
  }
}

TEST_F(Record, OddFilesNeitherBlockNorLeadElsewhere) {
  const std::string id = make({{"elsewhere", test::format_end("exit 0 1700000000123 supervisor\n")}});
  fs::create_symlink("elsewhere", folder(id) / "journal.jsonl");
  fs::create_directories(folder(id) / "backend");
  for (const char* name : {"supervisor", "pid", "job.pid"}) {
    ASSERT_EQ(::mkfifo((folder(id) / name).c_str(), 0600), 0);
  }
  const JobRecord job = record(id);
  EXPECT_FALSE(job.supervisor || job.main || job.has_result());
  EXPECT_EQ(job.backend, "local");
  EXPECT_FALSE(job.recorded.stop);
}

TEST_F(Record, HasTheSupervisorOfOtherBackends) {
  const JobRecord job = record(make({{"backend", "slurm\n"}, {"supervisor", "slurm 123 - -\n"}}));
  EXPECT_EQ(job.backend, "slurm");
  ASSERT_TRUE(job.supervisor);
  EXPECT_EQ(job.supervisor->id.pid, 0);
  EXPECT_FALSE(job.supervisor->has_session);
  EXPECT_EQ(record(make({{"backend", "../x\n"}})).backend, "unknown");
}

TEST_F(Record, KnowsTheJobsOfLabml) {
  EXPECT_EQ(record(make({{"job.pid", "4121\n"}})).backend, "labml");
  EXPECT_EQ(record(make({{"job.pid", "4121\n"}})).main, (ProcessId{4121, 0}));
  EXPECT_EQ(record(make({{"job.pid", "x\n"}})).backend, "labml");
  EXPECT_EQ(record(make({{"job.pid", "4121\n"}, {"spec.json", ""}})).backend, "local");
  EXPECT_EQ(record(make({{"job.pid", "4121\n"}, {"supervisor", "1 2 3 4\n"}})).backend, "local");
}

TEST_F(Record, PidsAreChecked) {
  for (const char* text : {"0 1\n", "-5 1\n", "99999999999 1\n", "x 1\n", "12x 1\n"}) {
    EXPECT_FALSE(record(make({{"pid", text}, {"spec.json", ""}})).main) << text;
  }
}

TEST_F(Record, UnderstandsOlderResults) {
  for (const char* text : {"signal 9 1700000000", "signal 9 1700000000.000"}) {
    const auto told = end(text);
    ASSERT_TRUE(told) << text;
    EXPECT_EQ(told->how, wire::ProcessEnd::signalled(9));
    EXPECT_EQ(told->at, milliseconds(1700000000000));
    EXPECT_EQ(told->by, "-");
  }
  EXPECT_EQ(end("exit 3 1700000000123 supervisor")->at, milliseconds(1700000000123));
  for (const char* text : {"", "exit", "exit x", "walked 3 1700000000", "exit 3333", "exit 300", "signal 65",
                           "signal 0", "exit -1", "exit +1"}) {
    EXPECT_FALSE(end(text)) << text;
  }
}

// A supervisor whose `date` is killed repeatedly records how the job ended, but not when.
TEST_F(Record, AResultMayLackItsTime) {
  for (const char* text : {"exit 3 ", "exit 3", "exit 3 - supervisor", "exit 3 99999999999999"}) {
    const auto told = end(text);
    ASSERT_TRUE(told) << text;
    EXPECT_EQ(told->how, wire::ProcessEnd::exited(3));
    EXPECT_FALSE(told->at) << text;
  }
}

TEST_F(Record, SaysWhoRecordedTheEnd) {
  const auto by = [&](const std::string& word) {
    const auto told = end("exit 1 1700000000123 " + word).value();
    return std::pair(told.by, told.node);
  };
  EXPECT_EQ(by("torchrun"), std::pair(std::string("torchrun"), std::string()));
  EXPECT_EQ(by("slurm@n-4.x"), std::pair(std::string("slurm"), std::string("n-4.x")));
  EXPECT_EQ(by("n2"), std::pair(std::string("-"), std::string("n2"))) << "of an older build";
  EXPECT_EQ(by("slurm@$(id)"), std::pair(std::string("-"), std::string()));
  EXPECT_EQ(by("a@b@c").second, "");
}

TEST_F(Record, WritesEndsAsItReadsThem) {
  const wire::JobEnd end{
      .how = wire::ProcessEnd::signalled(15), .at = milliseconds(1700000000123), .by = "slurm", .node = "n2"};
  EXPECT_EQ(to_end_line(end), "signal 15 1700000000123 slurm@n2");
  EXPECT_EQ(to_end_line({.how = wire::ProcessEnd::exited(0)}), "exit 0 - -");
  EXPECT_EQ(parse_end(to_end_line(end))->end.node, "n2");
}

TEST_F(Record, OneThatWasClaimedNeverStarts) {
  const JobRecord job = record(make(
      {{"supervisor", "claimed\n"}, {"journal.jsonl", test::format_end("never 0 1700000000123 claim\n")}}));
  EXPECT_TRUE(job.is_claimed);
  EXPECT_TRUE(job.never_started());
  EXPECT_TRUE(job.has_result());
  EXPECT_FALSE(job.supervisor || job.end);
  EXPECT_EQ(job.recorded.never_starts_since, milliseconds(1700000000123));
  EXPECT_EQ(
      record(make({{"journal.jsonl", test::format_end("never 0 1700000000\n")}})).recorded.never_starts_since,
      milliseconds(1700000000000));
}

TEST_F(Record, StopWords) {
  using enum wire::StopCause;
  const auto same = [](const wire::StoppedBy& by, const std::string& word) {
    EXPECT_EQ(to_stop_word(by), word);
    EXPECT_EQ(parse_stop_word(word), by) << word;
  };
  same({.cause = user, .text = "ada@laptop"}, "user:ada@laptop");
  same({.cause = user, .text = ""}, "user:-");
  same({.cause = user, .text = "ada l%\xc3\xa9"}, "user:ada%20l%25%C3%A9");
  same({.cause = rank, .number = 3}, "rank:3");
  same({.cause = lost, .text = "my server"}, "lost:my%20server");
  same({.cause = hang, .number = 60}, "hang:60");
  same({.cause = launch}, "launch");
  // from older builds
  EXPECT_EQ(parse_stop_word("loss%20of%20b"), (wire::StoppedBy{.cause = lost, .text = "b"}));
  EXPECT_EQ(parse_stop_word("rank%202"), (wire::StoppedBy{.cause = rank, .number = 2}));
  EXPECT_EQ(parse_stop_word("ada@laptop"), (wire::StoppedBy{.text = "ada@laptop"}));
  EXPECT_EQ(parse_stop_word("-"), wire::StoppedBy());
  EXPECT_FALSE(parse_stop_word("user:%zz"));
  EXPECT_FALSE(parse_stop_word("user:a%4"));
  EXPECT_EQ(parse_stop_word("user:%1b[2J")->text, "\\x1b[2J");
  EXPECT_EQ(parse_stop_word("rank:-1")->cause, user);
}

TEST_F(Record, AStopMayBeInTheSecondPlace) {
  const std::string id = make({});
  EXPECT_FALSE(record(id).recorded.stop);
  put_second(id + ".journal.jsonl", test::format_stop("15 user:ada 1700000000123"));
  EXPECT_EQ(record(id).recorded.stop->by.text, "ada");
  put(id, "journal.jsonl", test::format_stop("9 user:bob 1700000000123"));
  EXPECT_EQ(record(id).recorded.stop->by.text, "bob");
}

TEST_F(Record, AClaimIsALock) {
  const std::string id = new_id();
  EXPECT_TRUE(claim(host(), jobs(), id));
  EXPECT_FALSE(claim(host(), jobs(), id));
  EXPECT_EQ(read(id, "supervisor"), "claimed\n");
  EXPECT_THAT(test::read_end(folder(id)), MatchesRegex("never 0 [0-9]+ claim\n"));
  EXPECT_TRUE(record(id).never_started());
  struct stat info {};
  ASSERT_EQ(::stat(folder(id).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0700U);
  const std::string begun = make({{"supervisor", ""}});
  EXPECT_FALSE(claim(host(), jobs(), begun)) << "its supervisor is about to fill the file";
  EXPECT_EQ(test::read_end(folder(begun)), "");
  EXPECT_FALSE(claim(host(), jobs(), "../x"));
}

TEST_F(Record, AClaimMakesTheProject) {
  fs::remove_all(fs::path(jobs().project));
  EXPECT_TRUE(claim(host(), jobs(), new_id()));
}

TEST_F(Record, AResultThatIsThereStays) {
  const std::string id =
      make({{"journal.jsonl", test::format_end("exit 3 1700000000123 supervisor\n")}, {"spec.json", ""}});
  const wire::JobEnd end{
      .how = wire::ProcessEnd::signalled(9), .at = milliseconds(1700000000456), .by = "kill"};
  EXPECT_TRUE(put_result(host(), record(id), end));
  EXPECT_EQ(record(id).end->how, wire::ProcessEnd::exited(3));
  const std::string half = make({{"journal.jsonl", "{\"kind\":\"ended\",\"en"}, {"spec.json", ""}});
  EXPECT_TRUE(put_result(host(), record(half), end));
  EXPECT_EQ(test::read_end(folder(half)), "signal 9 1700000000456 kill\n");
  const std::string none = make({{"spec.json", ""}});
  EXPECT_TRUE(put_result(host(), record(none), {.how = wire::ProcessEnd::signalled(9), .by = "kill"}));
  EXPECT_TRUE(record(none).end->at) << "now";
  EXPECT_EQ(std::distance(fs::directory_iterator(folder(none)), fs::directory_iterator()), 2)
      << "nothing is left beside it";
}

TEST_F(Record, AResultGoesToTheSecondPlaceIfItsFolderTakesNone) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "needs root, to be another user";
  }
  const std::string id = make({{"spec.json", ""}});
  const std::string removed = make({});
  fs::permissions(folder(id), fs::perms::owner_read | fs::perms::owner_exec);
  fs::permissions(folder(removed), fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_EQ(test::call_as_nobody(
                path(),
                [&] {
                  const wire::JobEnd end{.how = wire::ProcessEnd::signalled(9), .by = "kill"};
                  const bool is_put = put_result(host(), record(id), end);
                  const bool is_refused = !put_result(host(), record(removed), end);
                  return is_put && is_refused && record(id).end && record(id).end->how == end.how ? 7 : 1;
                }),
            7);
  EXPECT_EQ(test::read_end(folder(id)), "");
}

TEST_F(Record, ObstaclesAreNamed) {
  const std::string id = make({});
  EXPECT_EQ(find_obstacle(jobs(), id), "");
  EXPECT_EQ(find_obstacle(jobs(), new_id()), "");
  const JobsFolder elsewhere{path() / "not there", path() / "not there/.jobs"};
  EXPECT_EQ(find_obstacle(elsewhere, id),
            "cannot see the folder of the project, " + (path() / "not there").string());
}

TEST_F(Record, FoldersThatMayNotBeEnteredAreObstacles) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "needs root, to be another user";
  }
  const std::string id = make({});
  for (const fs::path& barrier : {fs::path(jobs().project), fs::path(jobs().jobs), folder(id)}) {
    fs::permissions(barrier, fs::perms::owner_read);
    EXPECT_EQ(test::call_as_nobody(path(),
                                   [&] {
                                     return !read_record(host(), jobs(), id) &&
                                                    find_obstacle(jobs(), id) ==
                                                        "no permission to read " + barrier.string()
                                                ? 7
                                                : 1;
                                   }),
              7)
        << barrier;
    fs::permissions(barrier, fs::perms::owner_all);
  }
}

TEST_F(Record, FilesAreWrittenWholeAndForTheirOwnerOnly) {
  const Path file = path() / "file";
  EXPECT_TRUE(put_file(file, "one\n"));
  EXPECT_TRUE(put_file(file, "two\n"));
  EXPECT_EQ(read_file(file), "two\n");
  EXPECT_TRUE(put_synced_file(file, "three\n"));
  EXPECT_EQ(read_file(file), "three\n");
  EXPECT_FALSE(put_synced_file(path() / "missing/file", "three\n"));
  EXPECT_TRUE(put_synced_file(file, "two\n"));
  EXPECT_FALSE(create_file(file, "three\n"));
  EXPECT_EQ(read_file(file), "two\n");
  EXPECT_TRUE(create_file(path() / "other", "three\n"));
  struct stat info {};
  ASSERT_EQ(::stat(file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  EXPECT_FALSE(put_file(path() / "nothing/file", "x\n"));
  const fs::path precious = path() / "precious";
  test::HostFolder::put(precious, "data");
  fs::create_symlink(precious, path() / "link");
  EXPECT_FALSE(create_file(path() / "link", "x\n"));
  EXPECT_TRUE(put_file(path() / "link", "x\n"));
  EXPECT_EQ(read_file(precious), "data");
}

}  // namespace
}  // namespace remote::agent
