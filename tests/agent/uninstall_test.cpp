#include "agent/uninstall/uninstall.hpp"

#include <gmock/gmock.h>

#include "agent/host/descriptor.hpp"
#include "agent/local_jobs.hpp"
#include "wire/cbor.hpp"
#include "wire/frame.hpp"

namespace remote::agent {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using wire::LeftReason;

class Uninstall : public ::testing::Test, protected test::LocalJobs {
 protected:
  Uninstall() {
    host().environment.erase("XDG_RUNTIME_DIR");
    make_folder(cache / digest);
    make_folder(bin);
    fs::create_directories(shared);
  }

  wire::UninstallRequest request(bool dry_run = false) const {
    return {
        .place = place(), .agent_folder = "~/agent folder/", .dry_run = dry_run, .shared = {shared.string()}};
  }
  wire::UninstallReply remove(bool dry_run = false) { return uninstall(host(), request(dry_run)); }
  static fs::path make_folder(const fs::path& path, std::chrono::minutes age = {}) {
    test::HostFolder::put(path / "file", "text");
    fs::last_write_time(path, fs::file_time_type::clock::now() - age);
    return path;
  }
  using Left = std::vector<std::pair<std::string, LeftReason>>;
  Left remove_and_list_left(bool dry_run = false) {
    Left left;
    for (const wire::LeftPath& path : remove(dry_run).left) {
      left.emplace_back(path.path, path.reason);
    }
    return left;
  }

  const fs::path home = host().home.string();
  const fs::path cache = home / ".cache/remote";
  const fs::path bin = fs::path(jobs().jobs.string()) / ".bin";
  const fs::path trees = fs::path(jobs().jobs.string()) / ".trees";
  const fs::path shared = home / "shared folder";
  const std::string digest = std::string(64, 'a');
  const std::string user = std::to_string(::geteuid());
};

TEST_F(Uninstall, RemovesProgramsAndNothingElse) {
  const std::string id = make({{"job.out", "out\n"},
                               {"spec.json", ""},
                               {"supervisor", dead_supervisor()},
                               {"journal.jsonl", test::format_end("exit 0 1000 supervisor\n")}});
  make_folder(home / "agent folder" / digest);
  test::HostFolder::put(home / "agent folder" / digest / "remote-agent", "");
  make_folder(home / "agent folder/bin");
  make_folder(home / "agent folder" / std::string(64, 'b'));  // has no agent
  make_folder(home / "agent folder" / std::string(64, 'c'));
  test::HostFolder::put(home / "agent folder" / std::string(64, 'c') / "new.123", "");
  const fs::path source = make_folder(home / "proj/src");
  const fs::path old_agent = make_folder(shared / ".remote-agent.abcXYZ", std::chrono::minutes(5));
  const fs::path old_program = make_folder(shared / ".remote-new.abc123", std::chrono::minutes(5));
  const fs::path strange = make_folder(shared / ".remote-new.a-b", std::chrono::minutes(5));
  const fs::path results = shared / ("remote-" + user);
  fs::create_directories(results);
  const fs::path installing = make_folder(cache / ".remote-new.x1");

  const wire::UninstallReply found = remove(true);
  EXPECT_THAT(found.removed,
              UnorderedElementsAre((cache / digest).string(), installing.string(), cache.string(),
                                   (home / "agent folder" / digest).string(),
                                   (home / "agent folder" / std::string(64, 'c')).string(), bin.string(),
                                   old_agent.string(), old_program.string(), results.string()));
  EXPECT_THAT(found.left, IsEmpty());
  for (const std::string& path : found.removed) {
    EXPECT_TRUE(fs::exists(path)) << path;
  }
  const wire::UninstallReply reply = remove();
  EXPECT_THAT(reply.removed, ::testing::UnorderedElementsAreArray(found.removed));
  EXPECT_THAT(reply.left, IsEmpty());
  EXPECT_THAT(reply.running, IsEmpty());
  for (const std::string& path : found.removed) {
    EXPECT_FALSE(fs::exists(path)) << path;
  }
  EXPECT_TRUE(fs::exists(home / "agent folder/bin/file"));
  EXPECT_TRUE(fs::exists(home / "agent folder" / std::string(64, 'b') / "file"));
  EXPECT_TRUE(fs::exists(source / "file") && fs::exists(strange / "file"));
  EXPECT_EQ(read(id, "job.out"), "out\n");
  EXPECT_THAT(remove().removed, IsEmpty());
}

TEST_F(Uninstall, RefusesWhileJobsRun) {
  const std::string id = make({{"spec.json", ""}});
  const test::Started process = carrier(id);
  const wire::UninstallReply reply = remove();
  ASSERT_EQ(reply.running.size(), 1U);
  EXPECT_EQ(reply.running[0].id, id);
  EXPECT_EQ(reply.running[0].pid, process.pid());
  EXPECT_THAT(reply.removed, IsEmpty());
  EXPECT_TRUE(fs::exists(cache / digest) && fs::exists(bin));
}

TEST_F(Uninstall, FollowsNoLinksAndReportsLeftovers) {
  const fs::path precious = make_folder(home / "precious");
  fs::remove_all(bin);
  fs::remove_all(cache / digest);
  for (const fs::path& link :
       {bin, cache / digest, shared / ".remote-new.abc", shared / ".remote-agent.abc"}) {
    fs::create_directory_symlink(precious, link);
  }
  const fs::path recent = make_folder(shared / ".remote-agent.abcXYZ");
  const fs::path strange = make_folder(cache / "my\nfile *");
  const fs::path results = make_folder(shared / ("remote-" + user));
  const fs::path lease = shared / (".remote-lease." + user + ".abcdef");
  test::HostFolder::put(lease, "");
  const Left others{{bin.string(), LeftReason::link},
                    {(cache / digest).string(), LeftReason::link},
                    {(cache / "my\\x0afile *").string(), LeftReason::unknown},
                    {recent.string(), LeftReason::recent},
                    {results.string(), LeftReason::results}};
  EXPECT_THAT(remove_and_list_left(true), ::testing::UnorderedElementsAreArray(others));
  Left all = others;
  all.emplace_back(lease.string(), LeftReason::lease);
  EXPECT_THAT(remove_and_list_left(), ::testing::UnorderedElementsAreArray(all));
  EXPECT_TRUE(fs::exists(precious / "file") && fs::exists(strange / "file") && fs::exists(recent / "file"));
  EXPECT_TRUE(fs::is_symlink(shared / ".remote-new.abc"));
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(strange.c_str(), 65534, 65534), 0);
    ASSERT_EQ(::chown(recent.c_str(), 65534, 65534), 0);
    EXPECT_THAT(remove_and_list_left(),
                Contains(std::pair((cache / "my\\x0afile *").string(), LeftReason::foreign)));
    EXPECT_TRUE(fs::exists(recent / "file"));
  }
}

TEST_F(Uninstall, ReportsWhatCannotBeRemoved) {
  const auto is_reported = [&] {
    fs::permissions(cache / digest, fs::perms::owner_read | fs::perms::owner_exec);
    const Left left = remove_and_list_left();
    fs::permissions(cache / digest, fs::perms::owner_all);
    return left ==
           Left{{(cache / digest).string(), LeftReason::failed}, {cache.string(), LeftReason::failed}};
  };
  EXPECT_TRUE(::geteuid() != 0 ? is_reported() : test::call_as_nobody(path(), is_reported) == 1);
}

TEST_F(Uninstall, KeepsFilesThatJobsOnOtherMachinesMayUse) {
  const std::string id = make({{"supervisor", "10 20 another-boot 30\n"}});
  make_folder(trees);
  EXPECT_THAT(remove_and_list_left(),
              UnorderedElementsAre(std::pair(bin.string(), LeftReason::unfinished),
                                   std::pair(trees.string(), LeftReason::unfinished)));
  put(id, "journal.jsonl", test::format_end("exit 0 1000\n"));
  EXPECT_THAT(remove_and_list_left(), IsEmpty());
  EXPECT_FALSE(fs::exists(bin) || fs::exists(trees));
}

TEST_F(Uninstall, LandsTreesFirst) {
  make_folder(trees);
  test::HostFolder::put(trees / (digest + ".open"), "");
  EXPECT_THAT(remove_and_list_left(), ElementsAre(std::pair(trees.string(), LeftReason::unmoved)));
  test::HostFolder::put(trees / digest / "new", "new");
  test::HostFolder::put(trees / (digest + ".list"), std::string("1 1 a\0", 6));
  fs::permissions(trees, fs::perms::owner_all);
  EXPECT_THAT(remove_and_list_left(), IsEmpty());
  EXPECT_EQ(read_file((home / "proj/new").string()), "new");
  EXPECT_FALSE(fs::exists(home / "proj/.jobs"));
}

TEST_F(Uninstall, NeedsAHomeDirectory) {
  host().home = "";
  EXPECT_THROW(remove(), std::runtime_error);
}

// A stream with a fixed number.
class NumberedStream final : public Stream {
 public:
  void send(const wire::Reply& /*reply*/) override { ::_exit(3); }
  bool is_closed() const override { return false; }
  std::uint32_t id() const override { return 7; }
};

TEST_F(Uninstall, ContinuesFromMemoryAndAnswersOnItsStream) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  test::Started child([&] {
    ::dup2(ends[1], STDOUT_FILENO);
    ::close(ends[0]);
    ::close(ends[1]);
    ::setenv("HOME", home.c_str(), 1);
    ::unsetenv("XDG_RUNTIME_DIR");
    NumberedStream stream;
    answer_uninstall(host(), request(), stream);
  });
  ::close(ends[1]);
  const Descriptor out(ends[0]);
  wire::FrameReader reader;
  std::vector<wire::Frame> frames;
  std::uint8_t buffer[4096];
  for (ssize_t count = 0; (count = ::read(out.get(), buffer, sizeof buffer)) > 0;) {
    reader.add(std::span(buffer).first(static_cast<std::size_t>(count)));
    while (const auto frame = reader.next()) {
      frames.push_back(*frame);
    }
  }
  EXPECT_EQ(child.wait(), 0);
  ASSERT_EQ(frames.size(), 2U);
  EXPECT_EQ(frames[0].stream, 7U);
  const auto reply = std::get<wire::UninstallReply>(wire::decode<wire::Reply>(frames[0].payload));
  EXPECT_THAT(reply.removed, Contains(bin.string()));
  EXPECT_THAT(reply.left, IsEmpty());
  EXPECT_EQ(frames[1].kind, wire::FrameKind::end);
  EXPECT_EQ(frames[1].stream, 7U);
  EXPECT_FALSE(fs::exists(cache));
}

}  // namespace
}  // namespace remote::agent
