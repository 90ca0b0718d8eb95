#include "cli/provision.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <CLI/Validators.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "base/strings.hpp"
#include "base/visible.hpp"
#include "cli/sync_check.hpp"
#include "servers/fanout.hpp"
#include "servers/peers.hpp"
#include "servers/python_env.hpp"
#include "ui/progress.hpp"

namespace remote::cli {
namespace {

using nlohmann::json;

// Passes one server's progress on, and keeps what a failed command said.
class Listener : public servers::PrepareListener {
 public:
  Listener(ui::Progress& progress, std::size_t index) : progress_(progress), index_(index) {}
  void step(const std::string& name) override { progress_.step(index_, name); }
  void detail(const std::string& text, std::optional<double> fraction) override {
    progress_.detail(index_, text, fraction);
  }
  void transfer(const ssh::RsyncProgress& progress) override {
    progress_.transfer(index_, as_transfer(progress));
  }
  void failed_output(const std::string& last_lines, const std::string& log) override {
    lines = last_lines;
    log_folder = log;
  }
  std::string lines;
  std::string log_folder;

 private:
  ui::Progress& progress_;
  std::size_t index_;
};

std::string summary(const servers::PrepareReport& report, const servers::PrepareSteps& steps) {
  std::vector<std::string> parts;
  const auto add = [&parts](const char* step, servers::StepResult result) {
    if (result != servers::StepResult::not_asked) {
      parts.push_back(std::string(step) + " " + to_string(result));
    }
  };
  add("setup", report.setup);
  if (report.sync != servers::StepResult::not_asked) {
    const std::size_t sent = report.files.changed.size();
    const std::size_t removed = report.files.removed.size();
    std::string text = sent > 0 ? "rsync " + counted(sent, "file") : "rsync nothing new";
    if (!report.sent_by.empty()) {
      text += " from " + report.sent_by;
    }
    if (removed > 0) {
      text += fmt::format(", {} removed", removed);
    }
    if (steps.sync_options.dry_run) {
      text += " (dry run)";
    }
    parts.push_back(text);
  }
  if (report.package_source != "none") {
    add("packages", report.packages);
  }
  std::string text;
  for (const std::string& part : parts) {
    text += (text.empty() ? "" : ", ") + part;
  }
  return text;
}

json to_json(const std::string& server, const servers::Outcome<servers::PrepareReport>& outcome,
             const std::string& log) {
  json entry = {{"server", server}, {"ok", outcome.ok()}};
  if (outcome.error) {
    entry["error"] = outcome.error->message();
    entry["hint"] = outcome.error->hint();
    entry["log"] = log.empty() ? json(nullptr) : json(log);
    return entry;
  }
  const servers::PrepareReport& report = *outcome.value;
  const auto step = [&entry](const char* name, servers::StepResult result) {
    if (result != servers::StepResult::not_asked) {
      entry[name] = to_string(result);
    }
  };
  step("setup", report.setup);
  step("packages", report.packages);
  entry["notes"] = report.notes;
  if (report.sync != servers::StepResult::not_asked) {
    entry["rsync"] = {{"changed", report.files.changed},
                      {"removed", report.files.removed},
                      {"newer", report.files.newer},
                      {"warnings", report.files.warnings},
                      {"differences", report.differences},
                      {"bytes", report.files.bytes},
                      {"from", report.sent_by.empty() ? json(nullptr) : json(report.sent_by)}};
  }
  return entry;
}

}  // namespace

ui::Transfer as_transfer(const ssh::RsyncProgress& progress) {
  ui::Transfer transfer;
  transfer.bytes = progress.bytes;
  if (progress.percent > 0) {
    // rsync tells whole percents, of all files of the project, also those that are there.
    transfer.total = std::max(progress.bytes, progress.bytes * 100 / static_cast<unsigned>(progress.percent));
  }
  transfer.bytes_per_second = progress.bytes_per_second;
  transfer.left = progress.percent > 0 && progress.percent < 100
                      ? progress.left
                      : std::string();  // then it is what has passed
  return transfer;
}

void add_server_option(CLI::App& command, ProvisionOptions& options) {
  command.add_option("--server", options.servers, "Only these servers (globs; may be repeated)")
      ->type_name("NAME")
      ->allow_extra_args(false);
}

void add_sync_options(CLI::App& command, ProvisionOptions& options) {
  command.add_flag("--delete", options.steps.remove,
                   "Remove from the servers what this machine sent and what is gone here now (nothing that "
                   "jobs wrote, nothing excluded)");
  command.add_flag_callback(
      "--overwrite", [&options] { options.steps.sync_options.update = false; },
      "Also send files that are newer on the server");
  command
      .add_option("--bwlimit", options.steps.sync_options.kilobytes_per_second,
                  "Send no more than this to each server")
      ->type_name("KB/S")
      ->check(CLI::Range(0, 1000000000));
  command
      .add_option(
          "--fan-out", options.fan_out,
          "Who sends to whom: this machine to every server (direct), or to one, and the servers to each "
          "other (peers: for large projects and many servers)")
      ->type_name("HOW")
      ->check(CLI::IsMember({"direct", "peers"}));
  command.add_flag("--verify", options.steps.verify, "Compare all contents afterwards and name what differs");
}

int run_provision(Context& context, const ProvisionOptions& options) {
  const config::Config& config = context.config();
  const std::vector<config::Server> servers = context.servers(options.servers);
  servers::PrepareSteps steps = options.steps;
  if (steps.setup && config.python.manager == config::PythonManager::conda && !config.python.version) {
    steps.default_python = servers::local_python_version();
  }
  ssh::Connector& connector = context.connector();
  std::vector<std::string> names;
  for (const config::Server& server : servers) {
    names.push_back(server.name);
  }
  std::optional<servers::Peers> peers;
  if (options.fan_out == "peers" && servers.size() > 1) {
    steps.peers = &peers.emplace(config);
  }
  std::vector<std::string> logs(servers.size());
  std::vector<servers::Outcome<servers::PrepareReport>> outcomes;
  {
    ui::Progress progress(context.terminal, names, context.options.quiet);
    outcomes = servers::fan_out(
        servers, [](const config::Server& server) { return server.name; },
        [&](const config::Server& server, std::size_t index) {
          Listener listener(progress, index);
          try {
            const auto connection = connector.connect(server, context.cancel);
            auto report = prepare(*connection, config, server, steps, listener, context.cancel);
            progress.done(index, summary(report, steps));
            return report;
          } catch (const Error& error) {
            logs[index] = listener.log_folder;
            progress.failed(index, error.message(), listener.lines, listener.log_folder);
            throw;
          }
        });
  }
  context.show_new_host_keys();
  json all = json::array();
  std::size_t failed = 0;
  bool left_alone = false;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const auto& outcome = outcomes[i];
    all.push_back(to_json(names[i], outcome, logs[i]));
    if (outcome.error) {
      ++failed;
      if (!outcome.error->hint().empty()) {
        context.terminal.err(" hint: " + names[i] + ": " + outcome.error->hint() + "\n");
      }
      continue;
    }
    for (const std::string& note : outcome.value->notes) {
      context.terminal.notice(names[i] + ": " + visible_line(note));
    }
    for (const std::string& warning : outcome.value->files.warnings) {
      context.terminal.warning(names[i] + ": " + visible_line(warning));
    }
    const servers::SyncReport& files = outcome.value->files;
    show_names(context, names[i] + ": left alone, newer on the server:", files.newer);
    left_alone = left_alone || !files.newer.empty();
    if (steps.sync_options.dry_run) {
      show_names(context, names[i] + ": would send:", files.changed);
    }
    show_names(context, names[i] + (steps.sync_options.dry_run ? ": would remove:" : ": removed:"),
               files.removed);
    if (!outcome.value->differences.empty()) {
      ++failed;
      show_names(context, names[i] + ": differs from here:", outcome.value->differences);
    }
  }
  if (left_alone) {
    context.terminal.notice(" hint: send them too with --overwrite");
  }
  if (context.options.json) {
    context.terminal.out(dump_json(all));
  }
  if (servers.size() > 1 || failed > 0) {
    const std::string title = steps.sync_options.dry_run ? "looked at, nothing was sent"
                              : left_alone               ? options.title + " but for what is newer there"
                                                         : options.title;
    context.terminal.notice(fmt::format("{} {}{}", counted(servers.size() - failed, "server"), title,
                                        failed > 0 ? fmt::format(", {} failed", failed) : std::string()));
  }
  return failed > 0 ? 1 : 0;
}

}  // namespace remote::cli
