#include "servers/container.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <remote/error.hpp>

#include "support/fake_agent.hpp"

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
  EXPECT_THAT(failure("container: {engine: lxc}"), HasSubstr("it must be docker, podman or apptainer"));
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

// The error of ready_container() if the agent gives this reply.
std::string refusal_of(const wire::ContainerReply& reply, const std::string& pull = "never") {
  test::FakeAgent connection;
  connection.answer(reply);
  const config::Config config =
      read("container: {image: the-image, pull: " + pull + "}\nservers: {a: {hostname: a}}");
  try {
    const Cancel cancel;
    ready_container(connection, config, config.servers[0], *config.servers[0].container, cancel);
  } catch (const Error& error) {
    return error.message() + " | " + error.hint();
  }
  return "no error; " + std::to_string(connection.requests.size()) + " questions";
}

TEST(Container, WhatTheServerAnswersIsChecked) {
  using enum wire::ContainerOutcome;
  const wire::ContainerReply found{ready, ContainerEngine::podman};
  EXPECT_EQ(refusal_of(found), "no error; 1 questions");
  EXPECT_EQ(refusal_of(found, "always"), "no error; 2 questions");
  EXPECT_THAT(refusal_of({ready, std::nullopt}), HasSubstr("it names no container engine"));
  EXPECT_THAT(refusal_of({missing, std::nullopt}), HasSubstr("it names no container engine"));
  EXPECT_THAT(refusal_of({missing, ContainerEngine::docker}),
              HasSubstr("docker has no image the-image | fetch or"));
  EXPECT_THAT(refusal_of({missing, ContainerEngine::apptainer}, "missing"), HasSubstr("it is a file"));
  EXPECT_THAT(refusal_of({.reason = "podman is not installed"}, "always"),
              HasSubstr("podman is not installed | install podman, docker or apptainer there"));
}

TEST(Container, TheEngineGetsItsOwnVariablesAndNoOthers) {
  const config::Config config =
      read("servers: {a: {hostname: a, env: {DOCKER_HOST: 'ssh://x', SECRET: y}, prologue: module load x}}");
  const std::string text =
      container_request(config, config.servers[0], {ContainerEngine::docker, "image"}, false).prologue;
  EXPECT_THAT(text, HasSubstr("DOCKER_HOST"));
  EXPECT_THAT(text, HasSubstr("module load x"));
  EXPECT_THAT(text, Not(HasSubstr("SECRET")));
  EXPECT_THAT(text, Not(HasSubstr("remote_program"))) << "the agent does not have these files";
}

}  // namespace
}  // namespace remote::servers
