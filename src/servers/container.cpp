#include "servers/container.hpp"

#include <fmt/format.h>
#include <remote/error.hpp>

#include "base/log.hpp"
#include "base/strings.hpp"
#include "config/container.hpp"
#include "servers/python_env.hpp"
#include "servers/shell_text.hpp"

namespace remote::servers {
namespace {

// The engine's variables of the server's own environment: its commands run with them as its jobs' do.
bool is_for_engine(std::string_view name) {
  return name.starts_with("DOCKER_") || name.starts_with("CONTAINER") || name.starts_with("APPTAINER") ||
         name.starts_with("SINGULARITY") || name == "XDG_RUNTIME_DIR";
}

// What to try, by what the server says.
std::string hint_for(const std::string& reason) {
  const std::string lower = lower_case(reason);
  if (lower.find("permission denied") != std::string::npos) {
    return "the login needs the right to docker's socket (group docker), or use podman, which needs none";
  }
  if (lower.find("is not installed") != std::string::npos) {
    return "install podman, docker or apptainer there, or let `prologue` in configs.yaml load it";
  }
  if (lower.find("cannot fetch") != std::string::npos) {
    return "look at the image's name, and whether this server reaches the registry and may log in to it";
  }
  return {};
}

// What comes before the engine on the server.
std::string engine_prologue(const config::Config& config, const config::Server& server) {
  Script script;
  script.append(prologue(config, server));
  for (const auto& [name, value] : server.env) {
    if (is_for_engine(name)) {
      script.call("export", {name + "=" + value});
    }
  }
  return shell_text(script);
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

void ContainerAnswer::take(AnswerLine& line) {
  if (line.kind() != "container") {
    line.refuse_kind();
  }
  state = line.choice<State>(
      line.word(), {{"ready", State::ready}, {"missing", State::missing}, {"failed", State::failed}},
      "a state is wrong");
  if (state == State::failed) {
    reason = line.rest();
    return;
  }
  engine = parse_container_engine(line.word());
  if (!engine) {
    line.refuse("an engine is wrong");
  }
  rootless = line.choice<bool>(line.word(), {{"rootless", true}, {"-", false}}, "a word is wrong");
  line.end();
}

Action<ContainerAnswer> container_action(const config::Config& config, const config::Server& server,
                                         const Container& container, bool fetch) {
  Action<ContainerAnswer> action;
  action.what = fetch ? "fetch of an image" : "look for an image";
  action.script.set("prologue", engine_prologue(config, server))
      .set_path("project", config.project_path_on(server))
      .add("actions/container_check.sh")
      .call("container_check", {engine_word(container), container.image,
                                fetch          ? "fetch"
                                : server.slurm ? "login"
                                               : "look"});
  if (fetch) {
    action.guarded = true;
  } else {
    action.timeout = std::chrono::seconds(60);
  }
  return action;
}

ContainerRun ready_container(ssh::Connection& connection, const config::Config& config,
                             const config::Server& server, const Container& container, const Cancel& cancel) {
  ContainerAnswer answer = run_action(connection, container_action(config, server, container, false), cancel);
  using State = ContainerAnswer::State;
  const bool is_file =
      answer.engine == ContainerEngine::apptainer && container.image.find("://") == std::string::npos;
  // What a login node of Slurm has not got at all, its nodes fetch.
  const bool newer = container.pull == ImagePull::always && !server.slurm;
  const bool fetch =
      !is_file && (newer || (container.pull != ImagePull::never && answer.state == State::missing));
  if (fetch && answer.state != State::failed) {
    log_info(server.name, "fetching the image {}", container.image);
    Container chosen = container;
    chosen.engine = answer.engine;
    answer = run_action(connection, container_action(config, server, chosen, true), cancel);
  }
  if (answer.state == State::missing) {
    throw Error("cannot start a container",
                fmt::format("{} has no image {}", to_string(answer.engine.value()), container.image),
                is_file
                    ? "it is a file: look at its path, and put it where the jobs see it, such as into the "
                      "project's folder"
                    : "fetch or build it there, or let configs.yaml have it fetched: container: {pull: "
                      "missing}")
        .on(server.name);
  }
  if (answer.state == State::failed) {
    throw Error("cannot start a container", answer.reason, hint_for(answer.reason)).on(server.name);
  }
  ContainerRun run{container, answer.rootless, engine_prologue(config, server)};
  run.container.engine = answer.engine;
  return run;
}

}  // namespace remote::servers
