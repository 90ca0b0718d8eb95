#include "servers/probe.hpp"

#include <gtest/gtest.h>
#include <remote/error.hpp>

#include "support/noise.hpp"

namespace remote::servers {
namespace {

constexpr auto parse_probe = [](std::string_view text) { return read_answer<ProbeAnswer>(text); };

const std::string good =
    "Welcome!\n@remote1 probe host node-1\n@remote1 probe cpus 8\n@remote1 probe gpus 2\n"
    "@remote1 probe python 3.11.2\n@remote1 probe route via eth0 10.0.0.1 10.0.0.2\n"
    "@remote1 probe port 29500 taken ada 4121 my server\n@remote1 probe suggest 20001\n@remote1 probe second "
    "20002\n@remote1 end\n";

std::string changed(const std::string& from, const std::string& to) {
  std::string text = good;
  text.replace(text.find(from), from.size(), to);
  return text;
}

TEST(ParseProbe, ReadsAllOfIt) {
  const ProbeAnswer answer = parse_probe(good);
  EXPECT_EQ(answer.host, "node-1");
  EXPECT_EQ(answer.cpus, 8);
  EXPECT_EQ(answer.gpus, 2);
  EXPECT_EQ(answer.python, "3.11.2");
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

TEST(ParseProbe, ReadsTheOtherForms) {
  EXPECT_FALSE(parse_probe(changed("python 3.11.2", "python none")).python);
  EXPECT_FALSE(parse_probe(changed("via eth0 10.0.0.1 10.0.0.2", "unknown fd00::2")).interface);
  EXPECT_FALSE(parse_probe(changed("via eth0 10.0.0.1 10.0.0.2", "unresolved")).resolved);
  EXPECT_EQ(parse_probe(changed("10.0.0.1 10.0.0.2", "fe80::1%eth0")).master_address, "fe80::1%eth0");
  EXPECT_EQ(parse_probe(changed("taken ada 4121 my server", "free")).port_free, true);
  const auto unseen = parse_probe(changed("taken ada 4121 my server", "taken 1000"));
  EXPECT_EQ(unseen.holder->user, "1000");
  EXPECT_FALSE(unseen.holder->pid);
}

TEST(ParseProbe, ReadsWhatWouldHarmALaunch) {
  EXPECT_FALSE(parse_probe(good).room || parse_probe(good).shm_free || parse_probe(good).clock);
  const auto with = [](const std::string& line) {
    return parse_probe(changed("@remote1 end", "@remote1 probe " + line + "\n@remote1 end"));
  };
  const auto room = with("room 4096 10 500 400").room;
  ASSERT_TRUE(room);
  EXPECT_EQ(room->free_bytes, 40960U);
  EXPECT_EQ(room->inodes, 500U);
  EXPECT_EQ(room->free_inodes, 400U);
  EXPECT_EQ(with("shm 1024 2 0 0").shm_free, 2048U);
  EXPECT_EQ(with("clock 1700000000").clock, 1700000000);
  const auto logout =
      with(
          "session yes\n@remote1 probe kill_user_processes yes\n@remote1 probe kill_excluded root "
          "bob\n@remote1 probe kill_only bob ada")
          .logout;
  EXPECT_TRUE(logout.ends_jobs_of("ada"));
  EXPECT_FALSE(logout.ends_jobs_of("bob"));
  EXPECT_FALSE(logout.ends_jobs_of("eve"));
  EXPECT_EQ(with("torch 2.1.0+cu121").torch, "2.1.0+cu121");
  EXPECT_EQ(with("cuda 12.1").cuda, "12.1");
  EXPECT_EQ(with("hip 5.7.31921").hip, "5.7.31921");
  EXPECT_EQ(with("env_python 3.10.4").env_python, "3.10.4");
  EXPECT_EQ(with("os Debian GNU/Linux 12 (bookworm)").os, "Debian GNU/Linux 12 (bookworm)");
  EXPECT_EQ(with("kernel 6.1.0-18-amd64").kernel, "6.1.0-18-amd64");
  EXPECT_EQ(with("driver 550.54.15").driver, "550.54.15");
  const auto models = with("model NVIDIA H100\n@remote1 probe model NVIDIA H100").models;
  EXPECT_EQ(models, (std::vector<std::string>{"NVIDIA H100", "NVIDIA H100"}));
  const auto holders = with("holder 12 ada -\n@remote1 probe holder 13 bob 7").gpu_holders;
  ASSERT_EQ(holders.size(), 2U);
  EXPECT_EQ(holders[1].user, "bob");
  EXPECT_EQ(holders[1].gpu, 7);
  EXPECT_EQ(holders[0].gpu, std::nullopt);
  for (const char* line :
       {"room 0 1 1 1", "room 4096 99999999999999999 1 1", "room 4096 1 1 -x", "room 1 1 1", "clock -1",
        "session no", "kill_user_processes no", "torch a b", "cuda a b", "os", "os a\x1b[m",
        "driver 1\n@remote1 probe driver 1", "model", "holder 0 ada -", "holder 12 a;b -", "holder 12 ada x",
        "holder 12 ada", "clock 1\n@remote1 probe clock 2"}) {
    EXPECT_THROW(with(line), Error) << line;
  }
  EXPECT_THROW(with("os " + std::string(200, 'x')), Error);
}

TEST(ParseProbe, ReadsWhatThereIsOfMpi) {
  EXPECT_FALSE(parse_probe(good).mpi);
  const auto with = [](const std::string& mpi) {
    return parse_probe(changed("@remote1 end", "@remote1 probe mpi " + mpi + "\n@remote1 end")).mpi;
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

TEST(ParseProbe, RefusesWhatItDoesNotUnderstand) {
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"cpus 8", "cpus 0"},
           {"cpus 8", "cpus 8 "},
           {"cpus 8", "cpus  8"},
           {"cpus 8", "cpus 8 9"},
           {"cpus 8", "cpus"},
           {"cpus 8", "cpus 99999999999999999999"},
           {"gpus 2", "gpus -1"},
           {"gpus 2", "cpus 2"},
           {"gpus 2", "apus 2"},
           {"@remote1 probe gpus 2\n", ""},
           {"probe gpus 2", "job gpus 2"},
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
           {"@remote1 end\n", "@remote1 end\n@remote1 probe x\n"},
           {"@remote1 end\n", "@remote1 end of it\n"},
       }) {
    EXPECT_THROW(parse_probe(changed(from, to)), Error) << from << " -> " << to;
  }
  EXPECT_THROW(parse_probe(""), Error);
}

// Any bytes give an answer or an Error, and nothing else.
TEST(ParseProbe, SurvivesAnyBytes) {
  std::mt19937 random(1);
  for (int round = 0; round < 20000; ++round) {  // the fuzzers do more
    try {
      parse_probe(test::damaged(good, random));
    } catch (const Error&) {
    }
  }
}

TEST(ChoosePort, TakesTheNamedOrTheSuggestedOne) {
  ProbeAnswer answer = parse_probe(good);
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
