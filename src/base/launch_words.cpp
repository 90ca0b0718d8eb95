#include <algorithm>
#include <array>

#include <remote/launch.hpp>

#include "base/strings.hpp"

namespace remote {
namespace {

// In the order of the enumerators.
constexpr std::array<std::string_view, 3> engines{"docker", "podman", "apptainer"};
constexpr std::array<std::string_view, 3> image_pulls{"missing", "always", "never"};
constexpr std::array<std::string_view, 4> launcher_names{"ranks", "torchrun", "mpi", "sweep"};
constexpr std::array<std::string_view, 2> rendezvous_methods{"static", "c10d"};
constexpr std::array<std::string_view, 3> init_methods{"env", "tcp", "file"};
constexpr std::array<std::string_view, 6> causes{"exit", "signal", "oom", "lost", "hang", "lifeline"};
constexpr std::array<std::string_view, 9> no_restarts{"cause",      "exit_code",        "repeated",
                                                      "stopped",    "too_few_servers",  "unreached",
                                                      "unfinished", "coordinator_lost", "hang"};
constexpr std::array<std::string_view, 3> actions{"leave", "kill", "restart"};

template <typename Value>
std::optional<Value> find(const auto& words, std::string_view word) {
  const auto found = std::ranges::find(words, word);
  return found == words.end() ? std::nullopt : std::optional(static_cast<Value>(found - words.begin()));
}

}  // namespace

std::string_view to_string(ContainerEngine engine) {
  return engines.at(static_cast<std::size_t>(engine));
}

std::optional<ContainerEngine> parse_container_engine(std::string_view name) {
  return find<ContainerEngine>(engines, name);
}

std::optional<ImagePull> parse_image_pull(std::string_view name) {
  return find<ImagePull>(image_pulls, name);
}

std::string_view to_string(Launcher launcher) {
  return launcher_names.at(static_cast<std::size_t>(launcher));
}

std::optional<Launcher> parse_launcher(std::string_view name) {
  return find<Launcher>(launcher_names, name);
}

std::string to_string(const RanksPerServer& ranks) {
  const int* number = std::get_if<int>(&ranks);
  return number != nullptr                       ? std::to_string(*number)
         : ranks == RanksPerServer(OnePer::core) ? "cpu"
         : ranks == RanksPerServer(OnePer::gpu)  ? "gpu"
                                                 : "auto";
}

std::optional<RanksPerServer> parse_ranks_per_server(std::string_view text) {
  if (text == "auto") {
    return OnePer::automatic;
  }
  if (text == "gpu") {
    return OnePer::gpu;
  }
  if (text == "cpu") {
    return OnePer::core;
  }
  const auto number = parse_number<int>(text);
  return number && *number >= 1 && *number <= most_ranks_per_server ? std::optional<RanksPerServer>(*number)
                                                                    : std::nullopt;
}

std::string_view to_string(RendezvousMethod method) {
  return rendezvous_methods.at(static_cast<std::size_t>(method));
}

std::optional<RendezvousMethod> parse_rendezvous(std::string_view name) {
  return find<RendezvousMethod>(rendezvous_methods, name);
}

std::string to_string(const NodeRange& nodes) {
  return (nodes.least == nodes.most ? "" : std::to_string(nodes.least) + ":") + std::to_string(nodes.most);
}

std::optional<NodeRange> parse_node_range(std::string_view text) {
  const std::size_t colon = text.find(':');
  const auto least = parse_number<int>(text.substr(0, colon));
  const auto most = parse_number<int>(colon == std::string_view::npos ? text : text.substr(colon + 1));
  if (!least || !most || *least < 1 || *most < *least) {
    return std::nullopt;
  }
  return NodeRange{*least, *most};
}

std::string_view to_string(InitMethod method) {
  return init_methods.at(static_cast<std::size_t>(method));
}

std::optional<InitMethod> parse_init_method(std::string_view name) {
  return find<InitMethod>(init_methods, name);
}

std::string_view to_string(RestartCause cause) {
  return causes.at(static_cast<std::size_t>(cause));
}

std::optional<RestartCause> parse_restart_cause(std::string_view name) {
  return find<RestartCause>(causes, name);
}

std::string_view to_string(NoRestart reason) {
  return no_restarts.at(static_cast<std::size_t>(reason));
}

std::optional<NoRestart> parse_no_restart(std::string_view name) {
  return find<NoRestart>(no_restarts, name);
}

std::string_view to_string(OnHang action) {
  return actions.at(static_cast<std::size_t>(action));
}

std::optional<OnHang> parse_on_hang(std::string_view name) {
  return find<OnHang>(actions, name);
}

}  // namespace remote
