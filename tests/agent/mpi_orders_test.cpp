#include "agent/launch/mpi_orders.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "agent/job_folders.hpp"

namespace remote::agent {
namespace {

using ::testing::ElementsAre;
using Words = std::vector<std::string>;

TEST(SplitShellWords, FollowsQuotesAndBackslashesOfShells) {
  const std::vector<std::pair<std::string, Words>> cases{
      {"", {}},
      {" \t\r\n ", {}},
      {" a  b\tc\n", {"a", "b", "c"}},
      {R"('a b' "c d")", {"a b", "c d"}},
      {R"(a'b'"c"d)", {"abcd"}},
      {R"('' a "")", {"", "a", ""}},
      {R"(a\ b \' \")", {"a b", "'", "\""}},
      {R"('a\b' "a\b" "a\\b" "a\"b" "a\$b")", {R"(a\b)", R"(a\b)", R"(a\b)", R"(a"b)", R"(a\$b)"}},
      {R"("'" '"')", {"'", "\""}},
      {R"('a\' '\\' '\"')", {R"(a\)", R"(\\)", R"(\")"}},
      {"a\\\nb \"c\\\nd\"", {"a\nb", "c\\\nd"}},
      {"$(touch x) `y` #c ; | & >", {"$(touch", "x)", "`y`", "#c", ";", "|", "&", ">"}},
      {"ä\xff", {"ä\xff"}},
  };
  for (const auto& [line, words] : cases) {
    EXPECT_EQ(split_shell_words(line), words) << line;
  }
}

TEST(SplitShellWords, RefusesOpenQuotes) {
  for (const char* line : {"'", "\"", "a 'b", "a \"b\\\"", "a\\", "\"a\\", "'a\\"}) {
    EXPECT_FALSE(split_shell_words(line)) << line;
  }
}

class MpiOrdersTest : public ::testing::Test {
 protected:
  MpiOrdersTest() : id_(folders_.make({})) {}

  fs::path folder() { return folders_.folder(id_); }
  MpiOrders open() { return {folder(), {{"remote-b", "b"}, {"remote-c", "c"}}}; }
  void put(const std::string& name, const std::string& text) { folders_.put(id_, name, text); }
  std::string read(const std::string& name) { return folders_.read(id_, name); }
  bool has(const std::string& name) { return fs::is_symlink(folder() / name) || fs::exists(folder() / name); }

  // An agent that waits for the answer to its file.
  Descriptor await_answer(const std::string& number) {
    const fs::path path = folder() / ("answer." + number);
    ::mkfifo(path.c_str(), 0600);
    return Descriptor(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  }
  static std::string read_answer(const Descriptor& fifo) {
    std::array<char, 4096> text{};
    const ssize_t size = ::read(fifo.get(), text.data(), text.size());
    return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
  }
  // The answer to an order, after orders were read and sent to b.
  std::string give_order(const std::string& text) {
    MpiOrders orders = open();
    const Descriptor answer = await_answer("1");
    put("order.1", text);
    orders.look();
    send_to(orders, {"b"});
    return read_answer(answer);
  }
  void send_to(MpiOrders& orders, const std::set<std::string>& linked,
               const std::map<std::string, std::string>& gone = {}) {
    orders.send(
        [&](const std::string& server, const wire::MpiOrder& order) {
          if (!linked.contains(server)) {
            return false;
          }
          sent_.emplace_back(server, order.words);
          return true;
        },
        gone);
  }

  test::JobFolders folders_;
  std::string id_;
  std::vector<std::pair<std::string, Words>> sent_;
};

TEST_F(MpiOrdersTest, AreOnlyTheDaemonAndItsArguments) {
  EXPECT_EQ(
      give_order("remote-b\nPATH=/evil:$PATH;export PATH;touch x;/evil/orted\n-mca\ness \"env\"\n'a b'\n;\n"
                 "$(touch\nx)\n"),
      "ok\n");
  EXPECT_THAT(sent_,
              ElementsAre(std::pair("b", Words{"orted", "-mca", "ess", "env", "a b", ";", "$(touch", "x)"})));
  EXPECT_FALSE(has("order.1"));
}

TEST_F(MpiOrdersTest, NameOneOfTheDaemons) {
  for (const char* daemon : {"orted", "prted", "hydra_pmi_proxy"}) {
    EXPECT_EQ(give_order("remote-b\n/opt/" + std::string(daemon) + " 1\n"), "ok\n");
    EXPECT_EQ(sent_.back().second, (Words{daemon, "1"}));
  }
  sent_.clear();
  for (const char* line : {"sh -c true", "orted2", "/orted/sh", "orted '", "orted;", "", "xorted"}) {
    EXPECT_EQ(give_order("remote-b\n" + std::string(line) + "\n"), "its command line is not understood\n")
        << line;
  }
  EXPECT_THAT(sent_, ElementsAre());
}

TEST_F(MpiOrdersTest, AreForServersOfTheLaunch) {
  for (const char* text : {"remote-d\norted\n", "b\norted\n", "\norted\n", "", "remote-b orted\n"}) {
    EXPECT_EQ(give_order(text), "it is not a server of this launch\n") << text;
    EXPECT_FALSE(has("order.1"));
  }
}

TEST_F(MpiOrdersTest, HaveALimit) {
  const std::string start = "remote-b\norted ";
  EXPECT_EQ(give_order(start + std::string(32768 - start.size(), 'x')), "ok\n");
  EXPECT_EQ(give_order(start + std::string(32769 - start.size(), 'x')),
            "its command line is not understood\n");
  // Each invalid byte would become three bytes in the message.
  EXPECT_EQ(give_order(start + std::string(20000, '\xff')), "its command line is not understood\n");
}

TEST_F(MpiOrdersTest, AreUtf8) {
  EXPECT_EQ(give_order("remote-b\norted \xff\xc3\xa4\xc3\n"), "ok\n");
  EXPECT_EQ(sent_.back().second, (Words{"orted", "\xef\xbf\xbd\xc3\xa4\xef\xbf\xbd"}));
}

TEST_F(MpiOrdersTest, WaitUntilTheServerTakesThem) {
  MpiOrders orders = open();
  const Descriptor one = await_answer("1");
  const Descriptor two = await_answer("22");
  put("order.1", "remote-b\norted 1\n");
  put("order.22", "remote-c\norted 2\n");
  EXPECT_FALSE(orders.has_waiting());
  orders.look();
  orders.look();
  EXPECT_TRUE(orders.has_waiting());
  EXPECT_TRUE(has("order.1"));
  EXPECT_EQ(orders.find_sent("b"), nullptr);
  send_to(orders, {});
  EXPECT_EQ(read_answer(one) + read_answer(two), "");

  send_to(orders, {"b"});
  EXPECT_EQ(read_answer(one), "ok\n");
  EXPECT_EQ(read_answer(two), "");
  ASSERT_NE(orders.find_sent("b"), nullptr);
  EXPECT_EQ(orders.find_sent("b")->words, (Words{"orted", "1"}));
  EXPECT_EQ(orders.find_sent("c"), nullptr);
  EXPECT_FALSE(has("order.1"));

  send_to(orders, {"b"}, {{"c", "server c is gone"}});
  EXPECT_EQ(read_answer(two), "server c is gone\n");
  EXPECT_FALSE(orders.has_waiting());
  EXPECT_EQ(sent_.size(), 1U);
  EXPECT_EQ(orders.find_sent("c"), nullptr);
}

TEST_F(MpiOrdersTest, OutliveTheSupervisor) {
  put("order.1", "remote-b\norted late\n");
  put("until.1", "remote-c\n");
  open().look();
  MpiOrders orders = open();
  orders.look();
  EXPECT_TRUE(orders.has_waiting());
  EXPECT_TRUE(has("order.1"));
  EXPECT_TRUE(has("until.1"));
}

TEST_F(MpiOrdersTest, AnswerWhoWaitsForTheEnd) {
  MpiOrders orders = open();
  const Descriptor answer = await_answer("1");
  put("until.1", "remote-b\n");
  orders.look();
  orders.look();
  EXPECT_TRUE(orders.awaits_ends());
  orders.tell_ends({"c"});
  EXPECT_EQ(read_answer(answer), "");
  orders.tell_ends({"b", "c"});
  EXPECT_EQ(read_answer(answer), "ended\n");
  EXPECT_FALSE(orders.awaits_ends());
  EXPECT_FALSE(has("until.1"));
  orders.look();
  EXPECT_FALSE(orders.awaits_ends());
}

TEST_F(MpiOrdersTest, AreForgotten) {
  MpiOrders orders = open();
  put("order.1", "remote-b\norted\n");
  orders.look();
  send_to(orders, {"b"});
  put("order.2", "remote-b\norted\n");
  put("until.3", "remote-b\n");
  orders.look();
  EXPECT_TRUE(forget_mpi_attempt(folder()));
  orders.forget();
  EXPECT_FALSE(orders.has_waiting());
  EXPECT_FALSE(orders.awaits_ends());
  EXPECT_EQ(orders.find_sent("b"), nullptr);
}

TEST_F(MpiOrdersTest, AreRegularFilesWithANumber) {
  MpiOrders orders = open();
  put("elsewhere", "remote-b\norted\n");
  fs::create_symlink(folder() / "elsewhere", folder() / "order.1");
  ::mkfifo((folder() / "order.2").c_str(), 0600);
  fs::create_directory(folder() / "order.3");
  for (const char* name :
       {"order", "order.", "order.x", "order.1x", "order.-1", "orders.4", ".order.5", "order.6.7"}) {
    if (!has(name)) {
      put(name, "remote-b\norted\n");
    }
  }
  orders.look();
  EXPECT_FALSE(orders.has_waiting());
  EXPECT_TRUE(has("order.x"));
}

TEST_F(MpiOrdersTest, AnswerOnlyIntoAFifo) {
  MpiOrders orders = open();
  put("answer.1", "kept");
  put("target", "kept");
  fs::create_symlink(folder() / "target", folder() / "answer.2");
  put("order.1", "remote-d\n");
  put("order.2", "remote-d\n");
  put("order.3", "remote-d\n");  // no process waits for it
  ::mkfifo((folder() / "fifo").c_str(), 0600);
  const Descriptor fifo(::open((folder() / "fifo").c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  fs::create_symlink("fifo", folder() / "answer.4");
  put("order.4", "remote-d\n");
  orders.look();
  EXPECT_EQ(read("answer.1") + read("target"), "keptkept");
  EXPECT_EQ(read_answer(fifo), "");
  EXPECT_FALSE(has("order.3"));
  EXPECT_FALSE(has("answer.3"));
}

TEST_F(MpiOrdersTest, NeedTheirFifo) {
  {
    const MpiOrders orders = open();
    EXPECT_TRUE(fs::is_fifo(folder() / "orders"));
    const MpiOrders again = open();
  }
  fs::remove(folder() / "orders");
  put("orders", "");
  EXPECT_THROW(open(), std::runtime_error);
  fs::remove(folder() / "orders");
  ::mkfifo((folder() / "fifo").c_str(), 0600);
  fs::create_symlink("fifo", folder() / "orders");
  EXPECT_THROW(open(), std::runtime_error);
}

TEST_F(MpiOrdersTest, TheFirstOneIsKept) {
  ::mkfifo((folder() / "orders").c_str(), 0600);
  const Descriptor member(::open((folder() / "orders").c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  keep_mpi_order(folder(), {{"orted", "a b", ""}});
  EXPECT_EQ(read("order"), "orted\na b\n\n");
  EXPECT_EQ(read_answer(member), "\n");
  keep_mpi_order(folder(), {{"orted", "2"}});
  keep_mpi_order(folder(), {});
  EXPECT_EQ(read("order"), "orted\na b\n\n");
  EXPECT_EQ(read_answer(member), "");
}

TEST_F(MpiOrdersTest, WithoutWordsEndTheWaiting) {
  keep_mpi_order(folder(), {});
  EXPECT_TRUE(has("order"));
  EXPECT_EQ(read("order"), "");
}

TEST_F(MpiOrdersTest, OfOtherProgramsAreNotKept) {
  for (const Words& words :
       std::vector<Words>{{"sh"}, {"/bin/orted"}, {""}, {"orted", "a\nb"}, {"orted\n"}}) {
    keep_mpi_order(folder(), {words});
    EXPECT_FALSE(has("order"));
  }
  fs::create_symlink("nowhere", folder() / "order");
  keep_mpi_order(folder(), {{"orted"}});
  EXPECT_TRUE(fs::is_symlink(folder() / "order"));
  EXPECT_FALSE(has("nowhere"));
}

TEST_F(MpiOrdersTest, FilesOfAnAttemptAreRemoved) {
  const Words left{"job.out", "orders", "order_", "mpi_hosts", "ranks/1.err", "ranks/order.1"};
  const Words removed{"order", "order.1", "until.1", "answer.1", "open.rank.2", "raised.rank.2"};
  EXPECT_TRUE(forget_mpi_attempt(folder()));
  for (const Words& names : {left, removed}) {
    for (const std::string& name : names) {
      put(name, "");
    }
  }
  EXPECT_TRUE(forget_mpi_attempt(folder()));
  for (const std::string& name : left) {
    EXPECT_TRUE(has(name)) << name;
  }
  for (const std::string& name : removed) {
    EXPECT_FALSE(has(name)) << name;
  }
}

TEST_F(MpiOrdersTest, FilesOfAnAttemptThatStayAreReported) {
  put("order.1/x", "");
  put("until.1", "");
  EXPECT_FALSE(forget_mpi_attempt(folder()));
  EXPECT_FALSE(has("until.1"));
  EXPECT_FALSE(forget_mpi_attempt(folder() / "missing"));
}

}  // namespace
}  // namespace remote::agent
