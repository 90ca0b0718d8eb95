// `launch:` of configs.yaml: what launches do where their command line does not say it.

#include <algorithm>

#include "base/rendezvous.hpp"
#include "base/strings.hpp"
#include "config/section.hpp"

namespace remote::config {
namespace {

// The numbers are those of --nproc-per-node.
void check_nproc(const Section& section, const Found<std::string>& found) {
  const auto number = parse_number<int>(found.value);
  const bool word = found.value == "auto" || found.value == "gpu";
  if (!word && (!number || *number < 1 || *number > 4096)) {
    throw section.error(found.mark, "'nproc_per_node' must be a whole number from 1 up, or auto, and is '" +
                                        printable(found.value) + "'");
  }
}

void check_rendezvous(const Section& section, const Found<std::string>& found) {
  if (!is_rendezvous(found.value)) {
    throw section.error(found.mark, "'rdzv' must be static or c10d, and is '" + printable(found.value) + "'");
  }
}

void check_nnodes(const Section& section, const Found<std::string>& found) {
  if (!parse_node_range(found.value)) {
    throw section.error(found.mark, "'nnodes' must be MIN:MAX, such as 1:4, or a number, and is '" +
                                        printable(found.value) + "'");
  }
}

std::optional<InitMethod> parse_init_method(std::string_view word) {
  return word == "env"    ? std::optional(InitMethod::env)
         : word == "tcp"  ? std::optional(InitMethod::tcp)
         : word == "file" ? std::optional(InitMethod::file)
                          : std::nullopt;
}

std::vector<std::string> read_globs(const Section& section, const std::vector<Server>& servers) {
  std::vector<std::string> names;
  std::ranges::transform(servers, std::back_inserter(names), &Server::name);
  std::vector<std::string> globs;
  for (const auto& found : section.texts("servers")) {
    for (const std::string& glob : split_names({found.value})) {
      if (std::ranges::none_of(names, [&](const std::string& name) { return glob_match(glob, name); })) {
        const std::string near = did_you_mean(glob, names);
        throw section.error(found.mark,
                            "'servers' names '" + printable(glob) + "', and there is no such server",
                            near.empty() ? "there are " + join(names, ", ") : near);
      }
      globs.push_back(glob);
    }
  }
  return globs;
}

}  // namespace

LaunchSettings read_launch(const YamlNode& node, const std::vector<Server>& servers, const std::string& file,
                           Warnings& warnings) {
  const Section section(node, Level::launch, "'launch'", file, warnings);
  LaunchSettings settings;
  LaunchDefaults& usual = settings.defaults;
  const auto take = [&](const char* key, std::optional<std::string>& target) {
    auto found = section.text(key);
    if (found) {
      target = found->value;
    }
    return found;
  };
  take("cmd", usual.command);
  if (const auto found = take("nproc_per_node", usual.nproc)) {
    check_nproc(section, *found);
  }
  if (const auto found = take("launcher", usual.launcher)) {
    settings.launcher_mark = found->mark;
  }
  if (const auto found = take("rdzv", usual.torchrun.rendezvous)) {
    check_rendezvous(section, *found);
  }
  if (const auto found = take("nnodes", usual.torchrun.nodes)) {
    check_nnodes(section, *found);
  }
  usual.torchrun.max_restarts = section.number("max_restarts", 0, 1000000);
  if (const auto found = section.text("on_failure")) {
    if (found->value != "kill" && found->value != "leave") {
      throw section.error(found->mark,
                          "'on_failure' must be kill or leave, and is '" + printable(found->value) + "'");
    }
    usual.end_others = found->value == "kill";
  }
  if (const auto found = section.text("init_method")) {
    usual.init_method = parse_init_method(found->value);
    if (!usual.init_method) {
      throw section.error(found->mark,
                          "'init_method' must be env, tcp or file, and is '" + printable(found->value) + "'");
    }
  }
  take("init_dir", usual.init_dir);
  usual.env = section.variables("env");
  usual.servers = read_globs(section, servers);
  usual.follow = section.boolean("follow");
  usual.rsync = section.boolean("rsync");
  usual.check = section.boolean("check");
  return settings;
}

}  // namespace remote::config
