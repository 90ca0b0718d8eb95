#include "config/init.hpp"

#include <algorithm>
#include <array>
#include <chrono>

#include <CLI/App.hpp>
#include <fmt/format.h>

#include "base/files.hpp"
#include "base/paths.hpp"
#include "base/strings.hpp"
#include "cli/given_file.hpp"
#include "cli/options.hpp"
#include "config/config.hpp"
#include "config/ssh_line.hpp"
#include "config/validate.hpp"
#include "project/import/import.hpp"

// remote init: makes a folder a project.

namespace remote::cli {
namespace fs = std::filesystem;
namespace {

struct InitOptions {
  std::optional<std::string> name;
  std::vector<std::string> servers;
  std::optional<std::string> key;
  std::string from;
};

// Reads a line from the terminal, trimmed. End of input ends the command without writing anything.
std::string ask(Context& context, const std::string& prompt) {
  const auto answer = context.terminal.ask(prompt, context.cancel);
  context.cancel.check();
  if (!answer) {
    throw Error("init", "the input ended before all questions were answered", "nothing was written");
  }
  return std::string(trim(*answer));
}

std::string ask_name(Context& context, const fs::path& folder) {
  std::string usual = folder.filename().string();
  const bool has_default = !config::name_problem(usual);
  for (;;) {
    std::string name = ask(context, "Name of the project" + (has_default ? " [" + usual + "]" : "") + ": ");
    if (name.empty() && has_default) {
      return usual;
    }
    const auto problem = config::name_problem(name);
    if (!problem) {
      return name;
    }
    context.terminal.warning("this cannot be the name: " + *problem);
  }
}

bool is_named(const std::vector<config::NewServer>& servers, const std::string& name) {
  return std::ranges::find(servers, name, &config::NewServer::name) != servers.end();
}

std::vector<config::NewServer> ask_servers(Context& context) {
  std::vector<config::NewServer> servers;
  for (;;) {
    const std::string name =
        ask(context, servers.empty() ? "Name of the first server, such as first-server (Enter: none yet): "
                                     : "Name of the next server (Enter: no more): ");
    if (name.empty()) {
      return servers;
    }
    if (const auto problem = config::server_name_problem(name)) {
      context.terminal.warning(*problem);
      continue;
    }
    if (is_named(servers, name)) {
      context.terminal.warning("there is a server of this name already");
      continue;
    }
    for (bool made = false; !made;) {
      try {
        servers.push_back(config::make_new_server(
            name,
            ask(context, "Its address, [USER@]HOST[:PORT] (USER: ubuntu, unless ~/.ssh/config says): ")));
        made = true;
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::usage) {
          throw;
        }
        context.show(error);
      }
    }
  }
}

std::string ask_manager(Context& context) {
  context.terminal.notice(
      "Python on the servers:\n"
      "  conda   downloads Miniconda\n"
      "  venv    uses the servers' own python3\n"
      "  uv      uses uv\n"
      "  system  installs nothing");
  for (;;) {
    std::string answer = ask(context, "conda, venv, uv or system [conda]: ");
    for (const char* manager : {"", "conda", "venv", "uv", "system"}) {
      if (answer == manager) {
        return answer;
      }
    }
    context.terminal.warning("enter one of these four words");
  }
}

// in the order of ServerListForm
constexpr std::array form_words{"a hostfile",         "an ssh_config",        "SkyPilot's SSH node pools",
                                "dstack's SSH fleet", "an Ansible inventory", "an Ansible inventory"};

// --from: reports the detected form, and the settings that configs.yaml does not support.
std::vector<config::NewServer> servers_of_file(Context& context, const std::string& name,
                                               const fs::path& folder) {
  const fs::path file = absolute_path(expand_home(name)).lexically_normal();
  project::ServerList list =
      project::read_server_list(read_given_file("--from", file), name, file.parent_path(), folder);
  context.terminal.notice(fmt::format("{} is {}: {}", name,
                                      form_words.at(static_cast<std::size_t>(list.form)),
                                      counted(list.servers.size(), "server")));
  if (!list.left_out.empty()) {
    context.terminal.notice("not taken over: " + join_first(list.left_out, 5, "; "));
  }
  return list.servers;
}

fs::path project_folder(const Context& context) {
  const fs::path folder =
      absolute_path(expand_home(context.options.project.value_or("."))).lexically_normal();
  return folder.has_filename() ? folder : folder.parent_path();
}

// Reads the answers to labml_remote's questions from a pipe: name, hostname, username, key.
config::NewProject gather_piped(Context& context, const fs::path& folder) {
  const auto answer = [&](const std::string& prompt) {
    return std::string(trim(context.terminal.ask_stdin(prompt, context.cancel).value_or("")));
  };
  config::NewProject project;
  project.folder = folder;
  const std::string name = answer("Project name: ");
  if (const auto problem = name.empty() ? std::nullopt : config::name_problem(name)) {
    throw Error::usage("init", "'" + config::printable(name) + "' cannot be the project's name: " + *problem,
                       "--name gives it another one");
  }
  project.name = name.empty() ? std::nullopt : std::optional(name);
  const std::string hostname = answer("Hostname or IP address of the server: ");
  if (hostname.empty()) {
    return project;
  }
  const std::string username = answer("Username (ubuntu): ");
  const std::string key = answer("Private key file (empty: the agent and the keys in ~/.ssh): ");
  project.servers.push_back(
      config::make_new_server("default", (username.empty() ? "" : username + "@") + hostname));
  if (!key.empty()) {
    project.servers.front().private_key = config::private_key_value(key, current_folder(), folder);
  }
  return project;
}

config::NewProject gather(Context& context, const InitOptions& options, const fs::path& folder) {
  const bool asks = context.terminal.stdin_is_terminal() && context.terminal.stderr_is_terminal();
  const bool options_given = options.name || options.key || !options.servers.empty() || !options.from.empty();
  // An empty pipe has no answers to wait for.
  if (!context.terminal.stdin_is_terminal() && !options_given &&
      context.terminal.stdin_input(std::chrono::seconds(1)) == ui::Terminal::Input::some) {
    return gather_piped(context, folder);
  }
  config::NewProject project;
  project.folder = folder;
  if (!options.from.empty()) {
    project.servers = servers_of_file(context, options.from, folder);
  }
  std::vector<std::string> left_out;
  for (const std::string& text : options.servers) {
    // An ssh command without a name may also contain '='.
    const auto [name, address] = config::is_ssh_line(text)
                                     ? std::pair(fmt::format("server-{}", project.servers.size() + 1), text)
                                     : config::split_new_server(text);
    config::NewServer server = config::read_new_server(name, address, current_folder(), folder, left_out);
    if (is_named(project.servers, server.name)) {
      throw Error::usage("--server " + server.name, "two servers have this name",
                         "give one of them another name: --server NAME=HOST");
    }
    project.servers.push_back(std::move(server));
  }
  if (!left_out.empty()) {
    context.terminal.notice("not taken over: " + visible_line(join(left_out, "; ")));
  }
  if (options.name) {
    if (const auto problem = config::name_problem(*options.name)) {
      throw Error::usage("--name " + *options.name, *problem);
    }
    project.name = options.name;
  } else if (asks) {
    project.name = ask_name(context, folder);
  } else if (const auto problem = config::name_problem(folder.filename().string())) {
    throw Error::usage("init", "the folder's name cannot be the project's name: " + *problem,
                       "give --name NAME");
  }
  if (asks && options.servers.empty() && options.from.empty()) {
    project.servers = ask_servers(context);
  }
  std::optional<std::string> key = options.key;
  if (key && project.servers.empty()) {
    throw Error::usage("--key", "there is no server to use it for",
                       "give --server NAME=[USER@]HOST[:PORT] too");
  }
  if (asks && !key && options.from.empty() && !project.servers.empty()) {
    key = ask(context, "Private key file (Enter: the agent and the keys in ~/.ssh): ");
  }
  if (asks && !options_given) {
    project.manager = ask_manager(context);
  }
  if (key && !key->empty()) {
    if (!is_there(expand_home(*key))) {
      context.terminal.warning("there is no file " + *key + " yet");
    }
    for (config::NewServer& server : project.servers) {
      server.private_key = config::private_key_value(*key, current_folder(), folder);
    }
  }
  return project;
}

int init(Context& context, const InitOptions& options) {
  const fs::path folder = project_folder(context);
  std::error_code ignored;
  if (!is_folder(folder)) {
    throw Error::usage("init", "there is no folder " + folder.string(), "create it first");
  }
  config::NewProject project;
  project.folder = folder;
  if (fs::exists(fs::symlink_status(folder / ".remote/configs.yaml", ignored))) {
    if (options.name || !options.servers.empty() || options.key || !options.from.empty()) {
      throw Error::usage("init", (folder / ".remote/configs.yaml").string() + " exists already",
                         "edit that file: it is never overwritten");
    }
    project.name = "unused";  // the file is not written
  } else {
    project = gather(context, options, folder);
  }
  if (const auto above = config::nearest_project(folder.parent_path())) {
    context.terminal.notice("note: " + above->string() + " is a project too; inside " + folder.string() +
                            " this one is used from now on");
  }
  const config::InitResult result = config::init_project(project);
  for (const std::string& file : result.created) {
    context.terminal.notice("created " + file);
  }
  for (const std::string& file : result.existing) {
    context.terminal.notice("kept " + file + ": it exists already");
  }
  const auto without_user =
      std::ranges::find_if(project.servers, [](const config::NewServer& server) { return !server.username; });
  if (!result.created.empty() && without_user != project.servers.end()) {
    context.terminal.notice(
        fmt::format("user on {}: the one in ~/.ssh/config, else ubuntu; to change "
                    "it, set username in .remote/configs.yaml",
                    without_user->name));
  }
  if (!result.created.empty() && project.servers.empty()) {
    context.terminal.notice("next: add your servers to .remote/configs.yaml, or run `remote sandbox up`");
  } else if (!result.created.empty()) {
    context.terminal.notice("next: remote prepare");
  }
  return 0;
}

}  // namespace

void add_init(CLI::App& command, Context& context) {
  auto& options = arguments_of(command, context, init);
  command.add_option("--name", options.name, "Project name (default: the folder's name)")->type_name("NAME");
  command
      .add_option("--server", options.servers,
                  "Server as NAME=[USER@]HOST[:PORT], or an ssh command; repeatable")
      ->type_name("NAME=ADDRESS")
      ->allow_extra_args(false);
  command
      .add_option(
          "--from", options.from,
          "File with servers: a hostfile, an ssh_config, an Ansible inventory, SkyPilot's SSH node pools or "
          "dstack's SSH fleet")
      ->type_name("FILE");
  command.add_option("--key", options.key, "Private key of the servers (default: the agent, then ~/.ssh)")
      ->type_name("FILE");
}

}  // namespace remote::cli
