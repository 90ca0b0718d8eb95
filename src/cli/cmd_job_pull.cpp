// `remote job-pull --job KEY PATH…`: brings files that a job wrote from its server.

#include <filesystem>
#include <set>

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <remote/error.hpp>

#include "base/json.hpp"
#include "base/shell_quote.hpp"
#include "base/strings.hpp"
#include "cli/commands.hpp"
#include "cli/common.hpp"
#include "cli/provision.hpp"
#include "jobs/remote_folder.hpp"
#include "servers/sync.hpp"
#include "ui/progress.hpp"

namespace remote::cli {
namespace {

struct Arguments {
  std::string key;
  std::vector<std::string> paths;
  std::string to = ".";
  bool force = false;
};

// What a path is on the server, as `asked` says it.
constexpr std::string_view answer_mark = "@remote1 pull ";

std::string full_path(const std::string& project, std::string_view path) {
  if (path.starts_with('/') || path.starts_with("~/")) {
    return std::string(path);
  }
  while (path.starts_with("./")) {
    path.remove_prefix(2);
  }
  return path.empty() || path == "." ? project + "/" : fmt::format("{}/{}", project, path);
}

// The name under which a path comes here; empty where a folder's content comes, not the folder.
std::string local_name(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  return name == "." || name == ".." ? "" : name;
}

void check_names(const std::vector<std::string>& full) {
  std::set<std::string> names;
  for (const std::string& path : full) {
    const std::string name = local_name(path);
    if (!name.empty() && !names.insert(name).second) {
      throw Error::usage("job-pull", fmt::format("two of the paths would both become '{}' here", name),
                         "bring them one after the other, each with its own --to");
    }
  }
}

// Looks at the paths before anything is brought. Returns whether one of them is a symlink; throws Error that
// names what is missing.
bool look(Context& context, ssh::Connection& connection, const std::vector<std::string>& full,
          const std::vector<std::string>& asked, const std::string& project) {
  std::string script = "echo\n";
  for (std::size_t i = 0; i < full.size(); ++i) {
    script += fmt::format(
        "p={}\nif [ -L \"$p\" ] && [ -e \"$p\" ]; then k=link; elif [ -e \"$p\" ]; then k=there\n"
        "else k=missing; fi\nprintf '{}%s\\n' \"$k\"\n",
        remote_path_word(full[i]), answer_mark);
  }
  ssh::ExecRequest request;
  request.input = ssh::wrap_script(script);
  request.timeout = std::chrono::seconds(30);
  const ExecResult result = connection.exec(request, context.cancel);
  std::vector<std::string> kinds;
  for (const std::string& line : split(result.out, '\n')) {
    if (line.starts_with(answer_mark)) {
      kinds.push_back(line.substr(answer_mark.size()));
    }
  }
  if (kinds.size() != full.size()) {
    throw Error("cannot look at the files", "the server's answer is not understood");
  }
  std::vector<std::string> missing;
  bool link = false;
  for (std::size_t i = 0; i < full.size(); ++i) {
    link = link || kinds[i] == "link";
    if (kinds[i] == "missing") {
      missing.push_back("'" + asked[i] + "'");
    }
  }
  if (!missing.empty()) {
    throw Error(
        "cannot bring " + join(missing, ", "), "there is no such file or folder on the server",
        fmt::format("paths are looked for in {}; see what is there: remote run --cmd 'ls -l'", project));
  }
  return link;
}

void print(Context& context, const Arguments& arguments, const jobs::Job& job, const std::string& folder,
           const servers::SyncReport& report) {
  for (const std::string& warning : report.warnings) {
    context.terminal.warning(warning);
  }
  for (const std::string& name : report.newer) {
    context.terminal.warning(
        fmt::format("{}: left alone, it is newer here (--force brings it all the same)", name));
  }
  if (context.options.json) {
    const nlohmann::ordered_json value = {
        {"job", job.key},          {"id", job.id.text()},        {"server", job.server}, {"to", folder},
        {"files", report.changed}, {"newer_here", report.newer}, {"bytes", report.bytes}};
    context.terminal.out(dump_json(value));
    return;
  }
  if (report.changed.empty()) {
    context.terminal.notice(report.newer.empty() ? "all of it is here already" : "nothing was brought");
    return;
  }
  const double megabytes = static_cast<double>(report.bytes) / 1e6;
  context.terminal.notice(fmt::format("{} ({:.1f} MB) from {} in {}", counted(report.changed.size(), "file"),
                                      megabytes, job.server, arguments.to));
}

int run(Context& context, const Arguments& arguments) {
  jobs::Store store = open_store(context);
  const jobs::Job job = store.find(arguments.key);
  const std::string project = job.remote_folder.project;
  const config::Server& server = jobs::server_of(context.config(), job);
  std::vector<std::string> full;
  for (const std::string& path : arguments.paths) {
    if (path.empty()) {
      throw Error::usage("job-pull", "a path is empty");
    }
    full.push_back(full_path(project, path));
  }
  check_names(full);
  servers::SyncReport report;
  const std::string folder = std::filesystem::absolute(arguments.to).lexically_normal().string();
  try {
    const auto connection = context.connector().connect(server, context.cancel);
    context.show_new_host_keys();
    servers::PullOptions options;
    options.copy_links = look(context, *connection, full, arguments.paths, project);
    options.update = !arguments.force;
    std::optional<ui::Progress> progress;
    if (context.terminal.stderr_is_terminal() && !context.options.quiet) {
      progress.emplace(context.terminal, std::vector<std::string>{server.name}, false);
      progress->step(0, "job-pull");
      options.on_progress = [&progress](const ssh::RsyncProgress& now) {
        progress->transfer(0, as_transfer(now));
      };
    }
    report = servers::sync_from(*connection, full, folder, options, context.cancel);
  } catch (const Interrupted&) {
    context.terminal.notice("the same command again goes on where this one stopped");
    throw;
  } catch (const Error& error) {
    throw error.on(server.name);
  }
  print(context, arguments, job, folder, report);
  return report.newer.empty() ? 0 : 1;
}

}  // namespace

void add_job_pull(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("job-pull", "Bring files that a job wrote from its server");
  const auto arguments = std::make_shared<Arguments>();
  command->add_option("--job", arguments->key, "The job with this key, or whose id begins so")
      ->type_name("KEY")
      ->required();
  command
      ->add_option("paths", arguments->paths,
                   "Files or folders there, relative to the project; FOLDER/ means its content")
      ->type_name("PATH")
      ->required();
  command->add_option("--to", arguments->to, "The folder here that they come into (default: the current one)")
      ->type_name("DIR");
  command->add_flag("--force", arguments->force, "Also in place of files that are newer here");
  command->callback([arguments, &context] { context.exit_code = run(context, *arguments); });
}

}  // namespace remote::cli
