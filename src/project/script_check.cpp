#include "project/script_check.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "base/beneath.hpp"
#include "base/first_script.hpp"
#include "base/ownership.hpp"
#include "base/paths.hpp"
#include "base/strings.hpp"
#include "servers/container.hpp"
#include "servers/fanout.hpp"
#include "servers/sent_state.hpp"
#include "servers/sync.hpp"

namespace remote::project {
namespace fs = std::filesystem;
namespace {

std::string working_directory(const Env& env) {
  std::string found;
  for (const auto& [name, value] : env) {
    found = name == "REMOTE_WORKDIR" ? value : found;
  }
  return found;
}

// The script's name in the project; "" if it is outside.
std::string name_in_project(const std::string& script, const std::string& workdir) {
  const auto leads_out = [](const std::string& path) {
    return path.starts_with('/') || path.starts_with('~');
  };
  if (leads_out(script) || leads_out(workdir)) {
    return "";
  }
  const fs::path name = (fs::path(workdir) / script).lexically_normal();
  return *name.begin() == ".." ? "" : name.string();
}

// Whether the shell first reads a file that may create the script or change the folder.
bool may_change_folder(const fs::path& project, const std::vector<std::string>& sourced,
                       const std::string& workdir) {
  return std::ranges::any_of(sourced, [&](const std::string& file) {
    if (fs::path(file).filename() == "activate") {  // of a virtual environment
      return false;
    }
    const std::string name = name_in_project(file, workdir);
    try {
      const auto text = name.empty() ? std::nullopt : read_beneath(project, name);
      return !text || !only_sets_variables(*text);
    } catch (const Error&) {
      return true;
    }
  });
}

std::string path_on(const config::Config& config, const config::Server& server, const std::string& script,
                    const std::string& workdir) {
  const auto is_whole = [](const std::string& path) {
    return path.starts_with('/') || path.starts_with("~/");
  };
  if (is_whole(script)) {
    return script;
  }
  const std::string folder = is_whole(workdir) ? workdir : config.project_path_on(server) + "/" + workdir;
  return folder + "/" + script;
}

// A file of the project that was probably meant.
struct Meant {
  std::string hint;
  std::string script{};  // as the command must name it; "": unknown
};

// `name`: the missing file, in the project. `workdir`: where the command runs, relative to the project, or
// absolute.
Meant find_nearest(const Core& core, const std::string& name, const std::string& workdir) {
  const std::string file = fs::path(name).filename().string();
  const auto here = files_here(core.config, core.cancel());
  std::vector<std::string> names;
  for (const servers::FileStamp& one : here.files()) {
    if (fs::path(one.name).filename() == file) {
      const std::string typed = fs::path(one.name).lexically_proximate(workdir).string();
      return {
          fmt::format("did you mean {}? The server looks for {}", visible_line(typed), visible_line(name)),
          typed};
    }
    if (fs::path(one.name).extension() == fs::path(name).extension()) {
      names.push_back(one.name);
    }
  }
  return {did_you_mean(name, names)};
}

// For a script with an absolute path of this machine, as a shell here makes it of "~/project/train.py".
Meant find_on_this_machine(const Core& core, const std::string& script, const std::string& workdir) {
  if (!script.starts_with('/') || workdir.starts_with('/') || workdir.starts_with('~')) {
    return {};
  }
  const fs::path name = resolved(script).lexically_relative(resolved(core.config.project));
  if (name.empty() || *name.begin() == ".." || !is_there(core.config.project / name)) {
    return {};
  }
  const std::string typed = name.lexically_proximate(workdir.empty() ? "." : workdir).string();
  return {fmt::format("the path is one of this machine; on a server, this file of the project is {}",
                      visible_line(typed)),
          typed};
}

}  // namespace

void check_script(Core& core, const std::vector<config::Server>& servers, const std::string& command,
                  const Env& env, const std::optional<std::string>& image,
                  const std::vector<CodeChanged>& changed) {
  const FirstScript first = find_first_script(command);
  const std::string& script = first.name;
  const std::string workdir = working_directory(env);
  const std::string name = script.empty() ? "" : name_in_project(script, workdir);
  const bool is_here = !name.empty() && is_there(core.config.project / name);
  const bool was_sent = std::ranges::none_of(
      changed, [&](const CodeChanged& one) { return std::ranges::find(one.names, name) != one.names.end(); });
  if (script.empty() || (is_here && was_sent) ||
      may_change_folder(core.config.project, first.sourced, workdir)) {
    return;
  }
  const auto outcomes =
      servers::fan_out(servers, &config::Server::name, [&](const config::Server& server, std::size_t) {
        const std::string path = path_on(core.config, server, script, workdir);
        const bool in_image = name.empty() && servers::container_of(server, image).has_value();
        const bool moves = core.config.prologue_on(server).find("cd ") != std::string::npos;
        return in_image || moves ||
               servers::look_at(*core.connector().connect(server, core.cancel()), {path}, core.cancel())
                       .front() != servers::PathKind::missing;
      });
  std::vector<std::string> missing;
  for (std::size_t i = 0; i < servers.size(); ++i) {
    if (outcomes[i].ok() && !*outcomes[i].value) {
      missing.push_back(servers[i].name);
    }
  }
  if (missing.empty()) {
    return;
  }
  const std::string shown = visible_line(name.empty() ? script : name);
  if (is_here) {
    throw Error::usage("nothing was started",
                       fmt::format("{} is not on {}: it was not sent yet", shown, join(missing, ", ")))
        .mended_by(Remedy::send_project);
  }
  const Meant meant =
      name.empty() ? find_on_this_machine(core, script, workdir) : find_nearest(core, name, workdir);
  throw Error::usage(
      "nothing was started",
      fmt::format("there is no {}{} on {}", shown, name.empty() ? "" : ", here or", join(missing, ", ")),
      meant.hint)
      .mended_by(meant.script.empty() ? Remedy::skip_check : Remedy::name_script, meant.script);
}

}  // namespace remote::project
