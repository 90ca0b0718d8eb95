// `remote add` and `remote remove`: edit the servers in configs.yaml, from the line that a provider displays.

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "base/files.hpp"
#include "base/json.hpp"
#include "base/ownership.hpp"
#include "base/paths.hpp"
#include "base/strings.hpp"
#include "cli/options.hpp"
#include "cli/show/error_json.hpp"
#include "cli/show/waiting.hpp"
#include "config/edit_servers.hpp"
#include "config/ssh_line.hpp"
#include "config/validate.hpp"

namespace remote::cli {
namespace fs = std::filesystem;
namespace {

struct AddArguments {
  std::string name;
  std::string address;
  bool login = true;
};

struct RemoveArguments {
  std::string name;
};

fs::path config_file(const fs::path& project) {
  return project / ".remote/configs.yaml";
}

std::string read_config(const fs::path& project) {
  return read_file_if_there(config_file(project)).value_or("");
}

// Keeps the file's mode, and a symbolic link.
void write_config(const fs::path& project, const std::string& text) {
  const fs::path file = resolved(config_file(project));
  struct stat info {};
  const bool is_known = ::stat(file.c_str(), &info) == 0;
  write_file_atomic(file, text, is_known ? info.st_mode & 0777 : 0644);
}

// "root@ssh5.example:40022"
std::string address_of(const config::NewServer& server) {
  return (server.username ? *server.username + "@" : "") +
         (server.port ? host_and_port(server.hostname, *server.port) : server.hostname);
}

int add(Context& context, const AddArguments& arguments) {
  const fs::path project = context.folder();
  std::vector<std::string> left_out;
  config::NewServer server =
      config::read_new_server(arguments.name, arguments.address, current_folder(), project, left_out);
  const std::string before = read_config(project);
  const config::EditedConfig after = config::put_server(before, project, server);
  if (after.text != before) {
    write_config(project, after.text);
  }
  context.terminal.notice(after.text == before
                              ? fmt::format("{} is {} already", server.name, address_of(server))
                          : after.is_new ? fmt::format("added {}: {}", server.name, address_of(server))
                                         : fmt::format("{} is now {}", server.name, address_of(server)));
  if (!left_out.empty()) {
    context.terminal.notice("not taken over: " + visible_line(join(left_out, "; ")));
  }
  nlohmann::json json{{"server", server.name},
                      {"new", after.is_new},
                      {"changed", after.text != before},
                      {"left_out", left_out},
                      {"reachable", nullptr}};
  std::optional<ServerState> state;
  if (arguments.login) {
    const Waiting waiting(context.terminal, "for " + server.name);
    state = context.project().server_states({server.name}).front();
    json["reachable"] = !state->error;
    put_error(json, state->error);
  }
  if (context.options.json) {
    context.print(json);
  } else if (state && !state->error) {
    context.terminal.out(fmt::format("{}: the login works, {}\n", server.name,
                                     counted(static_cast<std::size_t>(state->gpus.value_or(0)), "GPU")));
  }
  if (state && state->error) {
    context.show(std::vector<Error>{*state->error});
    context.terminal.notice(
        fmt::format("{} stays in configs.yaml; to try again: remote servers", server.name));
  }
  return state && state->error ? 1 : 0;
}

int remove(Context& context, const RemoveArguments& arguments) {
  const fs::path project = context.folder();
  const std::string after = config::remove_server(read_config(project), project, arguments.name);
  std::vector<Job> jobs = context.project().jobs({.unfinished_only = true, .ask = false});
  std::erase_if(jobs, [&](const Job& job) { return job.server != arguments.name; });
  if (!jobs.empty()) {
    throw Error::usage(
        "nothing was removed",
        fmt::format("{} on {}", counted(jobs.size(), "unfinished job"), arguments.name),
        fmt::format("end {0} with job-kill; if the machine is gone: remote job-clean --forget --job {1}",
                    jobs.size() == 1 ? "it" : "them", jobs.front().key));
  }
  write_config(project, after);
  if (context.options.json) {
    context.print({{"server", arguments.name}, {"removed", true}});
  } else {
    context.terminal.notice(
        fmt::format("removed {} from configs.yaml; nothing was changed on the machine", arguments.name));
  }
  return 0;
}

}  // namespace

void add_add(CLI::App& command, Context& context) {
  auto& arguments = arguments_of(command, context, add);
  CLI::Option* name = command.add_option("name", arguments.name, "Name of the server")->required();
  name->type_name("NAME");
  context.completers[name] = NameKind::servers;
  command
      .add_option("address", arguments.address,
                  "Its address, [USER@]HOST[:PORT], or an ssh command in quotes")
      ->required()
      ->type_name("ADDRESS");
  command.add_flag("--login,!--no-login", arguments.login, "Try the login (the default)");
}

void add_remove(CLI::App& command, Context& context) {
  auto& arguments = arguments_of(command, context, remove);
  CLI::Option* name = command.add_option("name", arguments.name, "Name of the server")->required();
  name->type_name("NAME");
  context.completers[name] = NameKind::servers;
}

}  // namespace remote::cli
