#include "servers/container.hpp"

#include <chrono>
#include <utility>

#include <fmt/format.h>
#include <remote/error.hpp>

#include "base/log.hpp"
#include "base/strings.hpp"
#include "config/container.hpp"
#include "servers/agent.hpp"
#include "servers/python_env.hpp"
#include "servers/shell_text.hpp"

namespace remote::servers {
namespace {

// Whether the engine needs this variable from the server's environment. Its commands use the same variables
// as the jobs.
bool is_for_engine(std::string_view name) {
  return name.starts_with("DOCKER_") || name.starts_with("CONTAINER") || name.starts_with("APPTAINER") ||
         name.starts_with("SINGULARITY") || name == "XDG_RUNTIME_DIR";
}

// A hint for the server's error.
std::string hint_for(const std::string& reason) {
  const std::string lower = lower_case(reason);
  if (lower.find("permission denied") != std::string::npos) {
    return "the user needs access to docker's socket (group docker); podman does not need it";
  }
  if (lower.find("is not installed") != std::string::npos) {
    return "install podman, docker or apptainer there, or let `prologue` in configs.yaml load it";
  }
  if (lower.find("cannot fetch") != std::string::npos) {
    return "check the image's name, and whether this server can reach the registry and log in to it";
  }
  return {};
}

// The shell text that runs on the server before the engine.
std::string engine_prologue(const config::Config& config, const config::Server& server) {
  std::string text = prologue(config, server);
  for (const auto& [name, value] : server.env) {
    if (is_for_engine(name)) {
      text += export_variable(name, value);
    }
  }
  return text;
}

// Asks the server's agent. Throws Error if a successful reply has no engine.
wire::ContainerReply ask_about(ssh::Connection& connection, wire::ContainerRequest request,
                               const Cancel& cancel) {
  AgentQuestion question{.what = request.fetch ? "fetch of an image" : "search for an image",
                         .silence = std::chrono::seconds(60)};
  if (!request.fetch) {
    question.timeout = std::chrono::seconds(180);  // the agent limits each program itself
  }
  question.request = std::move(request);
  auto reply = take_reply<wire::ContainerReply>(ask_agent(connection, question, cancel));
  if (reply.outcome != wire::ContainerOutcome::failed && !reply.engine) {
    throw Error("the server's answer is not understood", "it names no container engine")
        .mended_by(Remedy::tell_more);
  }
  return reply;
}

}  // namespace

std::string engine_word(const Container& container) {
  return container.engine ? std::string(to_string(*container.engine)) : std::string();
}

std::optional<Container> container_of(const config::Server& server, const std::optional<std::string>& image) {
  if (image == "none") {
    return std::nullopt;
  }
  if (image) {
    if (const auto problem = config::image_problem(*image)) {
      throw Error::usage(fmt::format("cannot use the image '{}'", visible_line(*image, 200)), *problem)
          .mended_by(Remedy::no_image);
    }
    Container container = server.container.value_or(Container());
    container.image = *image;
    return container;
  }
  if (server.container && server.container->image.empty()) {
    throw Error::usage("cannot use a container", "`container` in configs.yaml has no image",
                       "add one: container: {image: NAME}")
        .on(server.name);
  }
  return server.container;
}

wire::ContainerRequest container_request(const config::Config& config, const config::Server& server,
                                         const Container& container, bool fetch) {
  return {.engine = container.engine,
          .image = container.image,
          .project = config.project_path_on(server),
          .prologue = inline_files(engine_prologue(config, server)),
          .fetch = fetch,
          .is_login_node = server.slurm.has_value() && !fetch};
}

ContainerRun ready_container(ssh::Connection& connection, const config::Config& config,
                             const config::Server& server, const Container& container, const Cancel& cancel) {
  using enum wire::ContainerOutcome;
  wire::ContainerReply answer =
      ask_about(connection, container_request(config, server, container, false), cancel);
  const bool is_file =
      answer.engine == ContainerEngine::apptainer && container.image.find("://") == std::string::npos;
  // If a Slurm login node lacks the engine, its nodes fetch the image.
  const bool newer = container.pull == ImagePull::always && !server.slurm;
  const bool fetch = !is_file && (newer || (container.pull != ImagePull::never && answer.outcome == missing));
  if (fetch && answer.outcome != failed) {
    log_info(server.name, "fetching the image {}", container.image);
    Container chosen = container;
    chosen.engine = answer.engine;
    answer = ask_about(connection, container_request(config, server, chosen, true), cancel);
  }
  if (answer.outcome == missing) {
    throw Error("cannot start a container",
                fmt::format("{} has no image {}", to_string(answer.engine.value()), container.image),
                is_file ? "it is a file: check its path, and put it where the jobs see it, such as into the "
                          "project's folder"
                        : "fetch or build it there, or let configs.yaml have it fetched: container: {pull: "
                          "missing}")
        .on(server.name);
  }
  if (answer.outcome == failed) {
    throw Error("cannot start a container", answer.reason, hint_for(answer.reason)).on(server.name);
  }
  ContainerRun run{container, answer.rootless, engine_prologue(config, server)};
  run.container.engine = answer.engine;
  return run;
}

}  // namespace remote::servers
