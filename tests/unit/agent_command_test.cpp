#include "server/agent_command.hpp"

#include <stdexcept>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/hashing.hpp"
#include "server/unpack_agent.hpp"
#include "ssh/agent_channel.hpp"

namespace remote::server {
namespace {

// The line after the script, and the program.
std::string what_follows_the_script(const Agent& agent, std::string_view program) {
  return fmt::format("\n{} {} {}\n{}", agent.digest, program.size(), agent.size, program);
}

TEST(AgentNeed, HasTheArchitectureAndMaybeXz) {
  EXPECT_FALSE(parse_agent_need("@remote-agent here"));
  EXPECT_FALSE(parse_agent_need("@remote-agent failed x86_64 xz"));
  for (const char* text : {"x86_64", "x86_64 bzip2", "xz", "x86_64xz", ""}) {
    const std::string line = std::string(agent_needed) + text;
    const auto need = parse_agent_need(line);
    ASSERT_TRUE(need) << text;
    EXPECT_EQ(need->architecture, text);
    EXPECT_FALSE(need->has_xz) << text;
  }
  const auto need = parse_agent_need("@remote-agent need x86_64 xz");
  ASSERT_TRUE(need);
  EXPECT_EQ(need->architecture, "x86_64");
  EXPECT_TRUE(need->has_xz);
}

TEST(UnpackAgent, GivesTheProgramOfTheDigest) {
  for (const Agent& agent : agents()) {
    EXPECT_EQ(sha256_hex(unpack_agent(agent)), agent.digest);
    EXPECT_LT(agent.xz.size(), agent.size / 2);
    Agent damaged = agent;
    damaged.xz.remove_suffix(100);
    EXPECT_THROW(unpack_agent(damaged), std::runtime_error);
    for (const std::size_t size : {agent.size - 1, agent.size + 1}) {
      damaged = agent;
      damaged.size = size;
      EXPECT_THROW(unpack_agent(damaged), std::runtime_error);
    }
  }
}

TEST(AgentInstallation, IsCompressedIfTheServerHasXz) {
  const Agent& agent = agents().front();
  for (const bool has_xz : {true, false}) {
    std::string sent;
    ssh::AgentStart start("request", {});
    start.take(fmt::format("noise\n@remote-agent need {}{}\n", agent.architecture, has_xz ? " xz" : ""),
               [&](std::string_view data) { sent += data; });
    EXPECT_TRUE(start.is_installing());
    const std::string program = has_xz ? std::string(agent.xz) : unpack_agent(agent);
    EXPECT_TRUE(sent.ends_with(what_follows_the_script(agent, program) + "7\nrequest")) << has_xz;
    EXPECT_TRUE(sent == agent_installation(agent, has_xz) + "7\nrequest");
  }
}

}  // namespace
}  // namespace remote::server
