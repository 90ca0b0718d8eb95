// Facts about a server from an agent installed there, with every available shell.

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.hpp"
#include "servers/agent.hpp"
#include "servers/facts.hpp"
#include "servers/python_env.hpp"
#include "support/script_test.hpp"

namespace remote::servers {
namespace {

namespace fs = std::filesystem;

class AgentFacts : public test::ScriptTest {
 protected:
  static config::Config parse(const std::string& more) {
    return config::parse("name: my proj\nservers:\n  a: {hostname: a}\n" + more, "/home/me/proj");
  }
  FactsAnswer ask(const FactsRequest& request) { return ask_facts(*connection, request, Cancel()); }
  ServerFacts check(const config::Config& config) {
    return ask(check_request(config, config.servers.front())).facts;
  }
  fs::path home() { return servers.home("a"); }
  static void put_program(const fs::path& path, const std::string& text) {
    fs::create_directories(path.parent_path());
    write_file_atomic(path, "#!/bin/sh\n" + text, 0755);
  }
};

TEST_P(AgentFacts, AreOfThisMachine) {
  fs::create_directories(home() / "my proj");
  const ServerFacts facts = check(parse("python: {manager: system}\n"));
  EXPECT_FALSE(facts.os.empty());
  EXPECT_GE(facts.usable_threads, 1);
  EXPECT_GT(facts.memory, facts.memory_available);
  EXPECT_EQ(facts.uid, ::getuid());
  EXPECT_EQ(facts.load.size(), 3U);
  EXPECT_TRUE(facts.programs.contains("rsync"));
  EXPECT_LT(std::chrono::abs(facts.clock_ahead), std::chrono::minutes(1));
  ASSERT_NE(facts.disk("project"), nullptr);
  EXPECT_EQ(facts.disk("project")->path, home() / "my proj");
}

TEST_P(AgentFacts, AreOfTheEnvironmentThatAJobEnters) {
  const config::Config config = parse("python: {manager: venv}\n");
  const std::string environment = environment_folder(config, config.servers.front());
  ASSERT_TRUE(environment.starts_with("~/")) << environment;
  const fs::path env = home() / environment.substr(2);
  put_program(env / "bin/python", "");
  put_program(env / "bin/python3", "[ \"$*\" = -V ] || exit 9\necho Python 3.9.7\n");
  put_program(env / "bin/tool-of-env", "");
  write_file_atomic(env / "pyvenv.cfg", "home = /usr/bin\ninclude-system-site-packages = false\n");
  fs::create_directories(env / "lib/python3.9/site-packages/numpy-1.26.4.dist-info");
  const ServerFacts facts = check(config);
  EXPECT_EQ(facts.python, "3.9.7");
  EXPECT_EQ(facts.python_program, env / "bin/python3");
  EXPECT_EQ(facts.packages.size(), 1U);
  FactsRequest request{.wanted = {.project = "~/my proj",
                                  .environment = environment,
                                  .activate = activation(config, config.servers.front())}};
  request.wanted.program = "tool-of-env";
  EXPECT_EQ(ask(request).missing, "");
  request.wanted.program = "no-such-tool";
  EXPECT_EQ(ask(request).missing, "no-such-tool");
}

TEST_P(AgentFacts, FollowTheProloguesPath) {
  put_program(home() / "site/python3", "[ \"$*\" = -V ] || exit 9\necho Python 3.8.1\n");
  const ServerFacts facts =
      check(parse("python: {manager: system}\nprologue: 'echo noise; export PATH=\"$HOME/site:$PATH\"'\n"));
  EXPECT_EQ(facts.python, "3.8.1");
  EXPECT_EQ(facts.python_program, home() / "site/python3");
}

// The file list of a large project exceeds the initial credit of a stream.
TEST_P(AgentFacts, CompareALargeProject) {
  fs::create_directories(home() / "my proj");
  write_file_atomic(home() / "my proj/same", "abc");
  struct stat info {};
  ASSERT_EQ(::stat((home() / "my proj/same").c_str(), &info), 0);
  FactsRequest request{.wanted = {.project = "~/my proj", .code = true}};
  request.files = "3 " + std::to_string(info.st_mtime) + " same\n";
  std::size_t count = 0;
  for (; request.files.size() < 4 * wire::initial_credit; ++count) {
    request.files += "1 2 a file that is not there, number " + std::to_string(count) + "\n";
  }
  const FactsAnswer answer = ask(request);
  ASSERT_TRUE(answer.code);
  EXPECT_EQ(answer.code->count, count);
  EXPECT_EQ(answer.code->files.size(), wire::CodeFacts::most_files);
}

TEST_P(AgentFacts, OneAgentAnswersSeveralQuestions) {
  const Cancel cancel;
  Agent agent(*connection, cancel);
  for (int i = 0; i < 3; ++i) {
    EXPECT_GT(ask_facts(agent, load_request("~/my proj")).ticks.all, 0U);
  }
}

// The agent arrives in pieces. Its installation over a slow link may take longer than the timeout of a
// request.
TEST_P(AgentFacts, APieceOfTheAgentIsASignOfLife) {
  servers.add_program("dd", "sleep 0.1; PATH=${PATH#*:}; dd \"$@\"");
  AgentQuestion question{.request = wire::FactsRequest{},
                         .timeout = std::chrono::seconds(3),
                         .silence = std::chrono::seconds(2)};
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_NO_THROW(ask_agent(*connection, question, Cancel()));
  EXPECT_GT(std::chrono::steady_clock::now() - begin, question.timeout)
      << "it did not take longer than the limit";
}

INSTANTIATE_TEST_SUITE_P(Shells, AgentFacts, test::every_shell, test::shell_name);

}  // namespace
}  // namespace remote::servers
