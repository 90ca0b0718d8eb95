#include "launch/probe.hpp"

#include <random>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <remote/error.hpp>
#include <sys/socket.h>
#include <unistd.h>

#include "base/files.hpp"
#include "base/strings.hpp"
#include "base/subprocess.hpp"

namespace remote::launch {
namespace {

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
  for (int round = 0; round < 20000; ++round) {
    std::string text = good;
    const int edits = 1 + static_cast<int>(random() % 6);
    for (int i = 0; i < edits && !text.empty(); ++i) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, random() % 20);
          break;
        case 2:
          text.insert(at, text.substr(random() % text.size(), random() % 40));
          break;
        default:
          text.resize(at);
          break;
      }
    }
    try {
      parse_probe(text);
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
    EXPECT_NE(error.hint().find("20001"), std::string::npos);
  }
  answer.port_free = true;
  EXPECT_EQ(choose_port(answer, 29500), 29500);
  answer.suggested_port.reset();
  EXPECT_THROW(choose_port(answer, 0), Error);
}

// ---- the script itself, on the shells there are -----------------------------------------------------------

// A socket that listens on a free port of 127.0.0.1 (or ::1), and is closed with the object.
class Listener {
 public:
  explicit Listener(int family) : fd_(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_storage address{};
    socklen_t size = 0;
    if (family == AF_INET) {
      auto* v4 = reinterpret_cast<sockaddr_in*>(&address);
      v4->sin_family = AF_INET;
      v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      size = sizeof *v4;
    } else {
      auto* v6 = reinterpret_cast<sockaddr_in6*>(&address);
      v6->sin6_family = AF_INET6;
      v6->sin6_addr = in6addr_loopback;
      size = sizeof *v6;
    }
    good_ = fd_ && ::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), size) == 0 &&
            ::listen(fd_.get(), 1) == 0 &&
            ::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0;
    port_ = ntohs(family == AF_INET ? reinterpret_cast<sockaddr_in*>(&address)->sin_port
                                    : reinterpret_cast<sockaddr_in6*>(&address)->sin6_port);
  }
  bool good() const { return good_; }
  int port() const { return port_; }
  void close() { fd_.reset(); }

 private:
  UniqueFd fd_;
  bool good_ = false;
  int port_ = 0;
};

class ProbeScript : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!find_program(split(GetParam(), ' ').front())) {
      GTEST_SKIP() << "no " << GetParam() << " here";
    }
  }
  static ProbeAnswer ask(const ProbeRequest& request) {
    SubprocessSpec spec;
    spec.argv = split(GetParam(), ' ');
    spec.argv.emplace_back("-s");
    const ExecResult result = run_subprocess(spec, probe_script(request));
    EXPECT_EQ(result.err, "");
    EXPECT_TRUE(result.status.success()) << result.status.describe();
    return parse_probe(result.out);
  }
};

TEST_P(ProbeScript, TellsAboutThisMachine) {
  const ProbeAnswer answer = ask({.master_addr = "127.0.0.1"});
  EXPECT_FALSE(answer.host.empty());
  EXPECT_EQ(answer.cpus, std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  EXPECT_EQ(answer.interface, "lo");
  EXPECT_EQ(answer.master_address, "127.0.0.1");
  EXPECT_FALSE(answer.port_free);
  EXPECT_FALSE(answer.suggested_port);
}

TEST_P(ProbeScript, FindsTheWayAlsoWithoutIp) {
  EXPECT_EQ(ask({.master_addr = "127.0.0.9", .ip_program = "no-such-ip"}).interface, "lo");
  EXPECT_FALSE(ask({.master_addr = "::1", .ip_program = "no-such-ip"}).interface);
  const std::string outside = "198.51.100.7";
  const ProbeAnswer with = ask({.master_addr = outside});
  const ProbeAnswer without = ask({.master_addr = outside, .ip_program = "no-such-ip"});
  EXPECT_EQ(with.interface, without.interface);
  if (!with.source.empty()) {
    // The master's own address: the interface that has it, not lo, which the others could not reach.
    EXPECT_EQ(ask({.master_addr = with.source}).interface, with.interface);
  }
}

TEST_P(ProbeScript, ResolvesNamesOrSaysSo) {
  EXPECT_EQ(ask({.master_addr = "localhost"}).interface, "lo");
  EXPECT_FALSE(ask({.master_addr = "no-such-host.invalid"}).resolved);
  EXPECT_FALSE(ask({.master_addr = "'; echo @remote1 end; '"}).resolved);
}

TEST_P(ProbeScript, SeesWhoHoldsAPort) {
  for (const int family : {AF_INET, AF_INET6}) {
    Listener listener(family);
    if (!listener.good()) {
      continue;  // no IPv6 here
    }
    const ProbeAnswer taken = ask({.master_addr = "127.0.0.1", .master_port = listener.port()});
    EXPECT_EQ(taken.port_free, false);
    ASSERT_TRUE(taken.holder);
    EXPECT_EQ(taken.holder->pid, ::getpid());
    EXPECT_EQ(taken.holder->program, "unit_tests");
    ASSERT_TRUE(taken.suggested_port);
    EXPECT_NE(*taken.suggested_port, listener.port());
    listener.close();
    EXPECT_EQ(ask({.master_addr = "127.0.0.1", .master_port = listener.port()}).port_free, true);
  }
}

TEST_P(ProbeScript, SuggestsAPortOutsideTheKernelsRange) {
  const ProbeAnswer answer = ask({.master_addr = "127.0.0.1", .master_port = 0});
  EXPECT_FALSE(answer.port_free);
  ASSERT_TRUE(answer.suggested_port);
  EXPECT_GE(*answer.suggested_port, 20000);
  EXPECT_LE(*answer.suggested_port, 32767);
  ASSERT_TRUE(answer.second_port);
  EXPECT_GE(*answer.second_port, 20000);
  EXPECT_NE(*answer.second_port, *answer.suggested_port);
}

INSTANTIATE_TEST_SUITE_P(Shells, ProbeScript, ::testing::Values("sh", "dash", "bash", "busybox sh"),
                         [](const auto& test) {
                           const std::string name = test.param;
                           return name.substr(0, name.find(' '));
                         });

}  // namespace
}  // namespace remote::launch
