#include <gtest/gtest.h>
#include <remote/error.hpp>

#include "servers/facts.hpp"
#include "support/noise.hpp"

namespace remote::servers {
namespace {

constexpr auto parse_facts = [](std::string_view text) {
  return read_answer(text, FactsAnswer({{"tell_machine"}, {"tell_python"}, {"tell_route"}}));
};

const std::string good =
    "Welcome!\n@remote1 facts host node-1\n@remote1 facts usable 8\n"
    "@remote1 facts python 3.11.2 /usr/bin/python3\n@remote1 facts route via eth0 10.0.0.1 10.0.0.2\n"
    "@remote1 facts port 29500 taken ada 4121 my server\n@remote1 facts suggest 20001\n@remote1 facts second "
    "20002\n@remote1 end\n";

std::string changed(const std::string& from, const std::string& to) {
  std::string text = good;
  text.replace(text.find(from), from.size(), to);
  return text;
}

TEST(ParseLaunchFacts, ReadsAllOfIt) {
  const FactsAnswer answer = parse_facts(good);
  EXPECT_EQ(answer.facts.host, "node-1");
  EXPECT_EQ(answer.cpus(), 8);
  EXPECT_EQ(answer.gpus(), 0);
  EXPECT_EQ(answer.facts.python, "3.11.2");
  EXPECT_TRUE(answer.resolved);
  EXPECT_EQ(answer.interface, "eth0");
  EXPECT_EQ(answer.master_address, "10.0.0.1");
  EXPECT_EQ(answer.source, "10.0.0.2");
  EXPECT_EQ(answer.port_free, false);
  ASSERT_TRUE(answer.holder);
  EXPECT_EQ(answer.holder->user, "ada");
  EXPECT_EQ(answer.holder->pid, 4121);
  EXPECT_EQ(answer.holder->program, "my server");
  EXPECT_EQ(answer.suggested_port, 20001);
  EXPECT_EQ(answer.second_port, 20002);
}

TEST(ParseLaunchFacts, ReadsTheOtherForms) {
  EXPECT_EQ(parse_facts(changed("python 3.11.2 /usr/bin/python3", "python none")).facts.python, "");
  EXPECT_FALSE(parse_facts(changed("via eth0 10.0.0.1 10.0.0.2", "unknown fd00::2")).interface);
  EXPECT_FALSE(parse_facts(changed("via eth0 10.0.0.1 10.0.0.2", "unresolved")).resolved);
  EXPECT_EQ(parse_facts(changed("10.0.0.1 10.0.0.2", "fe80::1%eth0")).master_address, "fe80::1%eth0");
  EXPECT_EQ(parse_facts(changed("taken ada 4121 my server", "free")).port_free, true);
  const auto unseen = parse_facts(changed("taken ada 4121 my server", "taken 1000"));
  EXPECT_EQ(unseen.holder->user, "1000");
  EXPECT_FALSE(unseen.holder->pid);
}

TEST(ParseLaunchFacts, KnowsWhoseProcessesLogindEnds) {
  ServerFacts facts;
  facts.in_session = facts.kill_user_processes = true;
  EXPECT_FALSE(logout_ends_jobs(facts, "root")) << "unless other users are excluded";
  facts.kill_excluded = {"root", "bob"};
  facts.kill_only = {"bob", "ada"};
  EXPECT_TRUE(logout_ends_jobs(facts, "ada"));
  EXPECT_FALSE(logout_ends_jobs(facts, "bob"));
  EXPECT_FALSE(logout_ends_jobs(facts, "eve"));
}

TEST(ParseLaunchFacts, ReadsWhatThereIsOfMpi) {
  EXPECT_FALSE(parse_facts(good).mpi);
  const auto with = [](const std::string& mpi) {
    return parse_facts(changed("@remote1 end", "@remote1 facts mpi " + mpi + "\n@remote1 end")).mpi;
  };
  EXPECT_FALSE(with("none"));
  const auto mpi = with("openmpi 4.1.4 whole root");
  ASSERT_TRUE(mpi);
  EXPECT_FALSE(mpi->hydra);
  EXPECT_EQ(mpi->version, "4.1.4");
  EXPECT_TRUE(mpi->has_daemon);
  EXPECT_TRUE(mpi->root);
  const auto other = with("hydra 4.0.2 client user");
  ASSERT_TRUE(other);
  EXPECT_TRUE(other->hydra);
  EXPECT_FALSE(other->has_daemon);
  EXPECT_FALSE(other->root);
  for (const char* wrong : {"lam 7 whole root", "openmpi", "openmpi 4.1.4 half root",
                            "openmpi $(reboot) whole root", "openmpi 4.1.4 whole root x"}) {
    EXPECT_THROW(with(wrong), Error) << wrong;
  }
}

TEST(ParseLaunchFacts, RefusesWhatItDoesNotUnderstand) {
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"usable 8", "usable -1"},
           {"usable 8", "usable 8 "},
           {"usable 8", "usable  8"},
           {"usable 8", "usable 8 9"},
           {"usable 8", "usable"},
           {"usable 8", "usable 99999999999999999999"},
           {"host node-1", "usable 2"},
           {"host node-1", "ghost node-1"},
           {"@remote1 facts usable 8\n", ""},
           {"facts usable 8", "job usable 8"},
           {"via eth0", "via eth0;reboot"},
           {"via eth0", "through eth0"},
           {"10.0.0.1", "$(reboot)"},
           {"taken", "stolen"},
           {"4121 my server", "0 x"},
           {"4121 my server", "4121"},
           {"my server", "my\x1b[2Jserver"},
           {"suggest 20001", "suggest 70000"},
           {"second 20002", "second 70000"},
           {"@remote1 end\n", ""},
           {"@remote1 end\n", "@remote1 end\n@remote1 facts x\n"},
           {"@remote1 end\n", "@remote1 end of it\n"},
       }) {
    EXPECT_THROW(parse_facts(changed(from, to)), Error) << from << " -> " << to;
  }
  EXPECT_THROW(parse_facts(""), Error);
}

// Any bytes give an answer or an Error, and nothing else.
TEST(ParseLaunchFacts, SurvivesAnyBytes) {
  std::mt19937 random(1);
  for (int round = 0; round < 20000; ++round) {  // the fuzzers do more
    try {
      parse_facts(test::damaged(good, random));
    } catch (const Error&) {
    }
  }
}

TEST(ChoosePort, TakesTheNamedOrTheSuggestedOne) {
  FactsAnswer answer = parse_facts(good);
  EXPECT_EQ(choose_port(answer, std::nullopt), 20001);
  EXPECT_EQ(choose_port(answer, 0), 20001);
  try {
    choose_port(answer, 29500);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_EQ(error.reason(), "it is taken by my server (pid 4121, user ada)");
    EXPECT_EQ(error.remedy(), Remedy::choose_port);
    EXPECT_EQ(error.remedy_detail(), "20001");
  }
  answer.port_free = true;
  EXPECT_EQ(choose_port(answer, 29500), 29500);
  answer.suggested_port.reset();
  EXPECT_THROW(choose_port(answer, 0), Error);
}

}  // namespace
}  // namespace remote::servers
