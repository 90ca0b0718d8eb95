#include "servers/container.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <remote/error.hpp>

namespace remote::servers {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

config::Config read(const std::string& text) {
  return config::parse(text, "/p/demo");
}

std::string failure(const std::string& text) {
  try {
    read(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.message() + " | " + error.hint();
  }
  return "no error";
}

TEST(ContainerConfig, AServersOwnKeysStandBeforeThoseOfAll) {
  const config::Config config = read(R"(
container: {engine: podman, image: one, args: [--shm-size, 8g], pull: never}
servers:
  a: {hostname: a}
  b: {hostname: b, container: {image: two, workdir: sub}}
  c: {hostname: c, container: {engine: docker, args: []}}
  d: {hostname: d, container: none}
)");
  const auto& servers = config.servers;
  EXPECT_EQ(servers[0].container->image, "one");
  EXPECT_THAT(servers[0].container->args, ElementsAre("--shm-size", "8g"));
  EXPECT_EQ(servers[1].container->engine, ContainerEngine::podman);
  EXPECT_EQ(servers[1].container->image, "two");
  EXPECT_EQ(servers[1].container->workdir, "sub");
  EXPECT_EQ(servers[1].container->pull, ImagePull::never);
  EXPECT_EQ(servers[2].container->engine, ContainerEngine::docker);
  EXPECT_EQ(servers[2].container->image, "one");
  EXPECT_THAT(servers[2].container->args, ElementsAre());
  EXPECT_FALSE(servers[3].container);
}

TEST(ContainerConfig, WhatIsWrongIsSaid) {
  EXPECT_THAT(failure("container: {engine: lxc}"), HasSubstr("it is docker, podman or apptainer"));
  EXPECT_THAT(failure("container: {engine: singularity}"), HasSubstr("write apptainer"));
  EXPECT_THAT(failure("container: {image: -v}"), HasSubstr("does not begin with '-'"));
  EXPECT_THAT(failure("container: {image: 'a b'}"), HasSubstr("no blanks"));
  EXPECT_THAT(failure("container: {pull: often}"), HasSubstr("missing, always or never"));
  EXPECT_THAT(failure("container: {workdir: \"a\\nb\"}"), HasSubstr("control character"));
  EXPECT_THAT(failure("container: podman"), HasSubstr("takes keys with values"));
  EXPECT_THAT(read("container: {imag: x}").warnings.at(0), HasSubstr("'image'"));
}

TEST(Container, TheImageOfARequestStandsBeforeTheConfiguredOne) {
  config::Server server;
  EXPECT_FALSE(container_of(server, std::nullopt));
  EXPECT_EQ(container_of(server, "one")->image, "one");
  EXPECT_EQ(container_of(server, "one")->engine, std::nullopt);
  server.container = Container{ContainerEngine::docker, "two", {"--ipc=private"}};
  EXPECT_EQ(container_of(server, std::nullopt)->image, "two");
  EXPECT_EQ(container_of(server, "one")->image, "one");
  EXPECT_THAT(container_of(server, "one")->args, ElementsAre("--ipc=private"));
  EXPECT_FALSE(container_of(server, "none"));
  EXPECT_THROW(container_of(server, "--privileged"), Error);
  EXPECT_THROW(container_of(server, ""), Error);
  server.container->image.clear();
  EXPECT_THROW(container_of(server, std::nullopt), Error);
}

TEST(Container, AnswersAreReadStrictly) {
  const auto answer = [](const std::string& line) {
    return read_answer<ContainerAnswer>("@remote1 container " + line + "\n@remote1 end\n");
  };
  EXPECT_EQ(answer("ready podman -").engine, ContainerEngine::podman);
  EXPECT_FALSE(answer("ready podman -").rootless);
  EXPECT_TRUE(answer("ready docker rootless").rootless);
  EXPECT_EQ(answer("missing docker -").state, ContainerAnswer::State::missing);
  EXPECT_EQ(answer("failed docker is not installed").reason, "docker is not installed");
  for (const char* line :
       {"", "ready", "ready podman", "ready lxc -", "ready podman - more", "gone podman -"}) {
    EXPECT_THROW(answer(line), Error) << line;
  }
}

TEST(Container, TheEngineGetsItsOwnVariablesAndNoOthers) {
  const config::Config config =
      read("servers: {a: {hostname: a, env: {DOCKER_HOST: 'ssh://x', SECRET: y}, prologue: module load x}}");
  const std::string text =
      container_action(config, config.servers[0], {ContainerEngine::docker, "image"}, false).script.text();
  EXPECT_THAT(text, HasSubstr("DOCKER_HOST"));
  EXPECT_THAT(text, HasSubstr("module load x"));
  EXPECT_THAT(text, Not(HasSubstr("SECRET")));
}

}  // namespace
}  // namespace remote::servers
