#include "cli/show/events.hpp"

#include <algorithm>
#include <cstddef>
#include <future>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "base/strings.hpp"
#include "cli/show/error_json.hpp"
#include "cli/show/jobs.hpp"
#include "cli/show/prepare_words.hpp"

namespace remote::cli {
namespace {

// A title and below it the first of the names, which are foreign text; nothing for no names.
void show_names(Context& context, const std::string& title, const std::vector<std::string>& names) {
  if (!names.empty()) {
    context.terminal.notice(title);
    for (const std::string& line : first_lines(names, 10)) {
      context.terminal.notice("    " + line);
    }
  }
}

// One function an event that has words; the others are passed by.
class EventText {
 public:
  explicit EventText(Context& context) : context_(context), terminal_(context.terminal) {}

  void operator()(const ConfigWarning& event) { terminal_.warning(event.text); }
  void operator()(const StoreProblem& event) { terminal_.warning(event.text); }
  void operator()(const SilentServer& event) {
    terminal_.warning(event.error.message() + "; the state of its jobs is unknown");
  }
  void operator()(const PartFailed& event) { context_.show(event.error); }
  void operator()(const NewHostKey& key) {
    terminal_.notice(fmt::format("new host key of {} ({}) accepted: {} {}", key.server, key.host, key.type,
                                 key.fingerprint));
    if (!key.warning.empty()) {
      terminal_.warning(key.warning);
    }
  }
  void operator()(const KeyProblem& event) {
    terminal_.warning(event.error.message());
    if (const std::string hint = hint_of(event.error); !hint.empty()) {
      terminal_.notice(" hint: " + hint);
    }
  }
  void operator()(const LinkLost& event) {
    terminal_.notice(
        event.reached ? fmt::format("{}: connection lost ({}); what runs there may go on. Connecting again …",
                                    event.server, event.reason)
                      : fmt::format("{}: not reached ({}). Trying again …", event.server, event.reason));
  }
  void operator()(const LinkBack& event) {
    terminal_.notice(event.server + ": connected again, going on where it stopped");
  }
  void operator()(const NoLifeline& event);
  void operator()(const SweepTrouble& event);
  void operator()(const RankWaits& event) {
    terminal_.notice(fmt::format("{}: waiting in {}: {}", describe(event.job), wait_text(event.wait),
                                 attach_command(event.job, event.wait)));
  }
  void operator()(const GpuCountDiffers& event) {
    terminal_.warning(fmt::format("{}: configs.yaml expects {} GPUs, the server shows {}", event.server,
                                  event.expected, event.found));
  }
  void operator()(const CheckWarned& event) {
    terminal_.warning(fmt::format("{}: {}: {}", event.server, event.finding.name, event.finding.detail));
  }
  void operator()(const CodeDiffers& event) {
    show_names(context_, event.server + ": differs from here:", event.names);
  }
  void operator()(const CodeChanged& event);
  void operator()(const EndingRanks& event) {
    // An agent may end because of a rank of another one, which is not known yet.
    const bool follows = event.failed && event.failed->reason.kind == JobReason::Kind::after_rank;
    terminal_.notice(event.failed
                         ? fmt::format("{}: {}; ending the other ranks", describe(*event.failed),
                                       follows ? "ended after a rank failed" : state_text(*event.failed))
                         : "ending the ranks that have started, or may have (--on-failure=leave keeps them)");
  }
  void operator()(const LinkLeftOut& event);
  void operator()(const KeyMade& event) { terminal_.notice("made the key " + event.file); }
  template <typename Other>
  void operator()(const Other&) {}

 private:
  Context& context_;
  ui::Terminal& terminal_;
};

// "train.py, model.py, data.py and 4 more"
std::string named(const std::vector<std::string>& names) {
  constexpr std::size_t most = 3;
  std::vector<std::string> shown;
  for (const std::string& name : names) {
    shown.push_back(visible_line(name));
    if (shown.size() == most) {
      break;
    }
  }
  return join(shown, ", ") +
         (names.size() > most ? fmt::format(" and {} more", names.size() - most) : std::string());
}

void EventText::operator()(const CodeChanged& event) {
  const std::string servers = named(event.servers);
  terminal_.warning(
      event.never_sent
          ? fmt::format("nothing was sent from here to {} yet, so other code may run there; --rsync sends it",
                        servers)
          : fmt::format("changed here since the last rsync to {}: {}; --rsync sends {}", servers,
                        named(event.names), event.names.size() == 1 ? "it" : "them"));
}

void EventText::operator()(const LinkLeftOut& event) {
  using Why = LinkLeftOut::Why;
  const std::string name = visible_line(event.name);
  const std::string target = visible_line(event.target);
  if (event.target.empty()) {
    terminal_.warning(name + " is not sent: it is a private key");
    return;
  }
  terminal_.warning(fmt::format(
      "the link {} is not sent: {}", name,
      event.why == Why::secret ? fmt::format("it points to {}, where secrets are kept", target)
      : event.why == Why::circle
          ? fmt::format("it points to {}, which it is in itself", target)
          : fmt::format("it points out of the project, to {} (`remote trust` allows it)", target)));
}

void EventText::operator()(const SweepTrouble& event) {
  using Cause = SweepTrouble::Cause;
  const std::string why = event.cause == Cause::stopped ? "its process there was stopped"
                          : event.cause == Cause::gone  ? "what the server kept of it is gone"
                          : event.cause == Cause::dead  ? "its process there is dead"
                                                        : visible_line(event.detail);
  terminal_.warning(event.all
                        ? fmt::format("{}: gives out no points of sweep {}, {}. To go on: remote sweep "
                                      "--resume {}",
                                      event.server, event.key, why, event.key)
                        : fmt::format("{}: begins no points of sweep {}: {}", event.server, event.key, why));
}

void EventText::operator()(const NoLifeline& event) {
  using Cause = NoLifeline::Cause;
  const std::string consequence =
      "when a rank fails, its ranks are ended only while this machine follows (--follow)";
  for (const NoLifeline::Server& server : event.servers) {
    terminal_.warning(
        server.cause == Cause::no_python
            ? fmt::format("{}: no lifeline, it has no python3 of 3.6 or later: {}", server.name, consequence)
        : server.cause == Cause::no_port
            ? fmt::format("{}: no lifeline, no second port is free: {}", server.name, consequence)
        : server.cause == Cause::restarted
            ? fmt::format("{}: its lifeline had died; it was started again just now", server.name)
        : server.cause == Cause::dead
            ? fmt::format("{}: its lifeline has died and cannot be started again ({}): {}", server.name,
                          visible_line(server.detail), consequence)
            : fmt::format("{}: no lifeline: {}", server.name, server.detail));
    if (server.cause == Cause::no_python && event.for_all) {
      terminal_.warning("and without the first server there is none between the others");
    }
  }
  if (std::ranges::find(event.servers, Cause::no_connection, &NoLifeline::Server::cause) !=
      event.servers.end()) {
    terminal_.warning(
        "a failed rank therefore ends the ranks on other servers only while this machine follows (--follow). "
        "To mend "
        "it: let the servers reach each other's TCP ports, or give the first server of the launch the "
        "internal_address by which the others reach it, in configs.yaml");
  }
}

using nlohmann::json;

std::string step_word(StepResult result) {
  return result == StepResult::done ? "done" : result == StepResult::skipped ? "already" : "";
}

// "home" or "folder": what servers have in common.
const char* common_place(const PrepareReport& report) {
  return report.shared_home ? "home" : "folder";
}

std::string summary(const PrepareReport& report, const PrepareRequest& request) {
  std::vector<std::string> parts;
  if (!report.shared_with.empty()) {
    parts.push_back(fmt::format("by way of {}: they share one {}", report.shared_with, common_place(report)));
    if (report.setup == StepResult::done) {
      parts.emplace_back("setup done");
    }
    if (report.packages == StepResult::done) {
      parts.emplace_back("packages done");
    }
    return join(parts, ", ");
  }
  const auto add = [&parts](const char* step, StepResult result) {
    if (result != StepResult::not_asked) {
      parts.push_back(std::string(step) + " " + step_word(result));
    }
  };
  add("setup", report.setup);
  if (report.sync != StepResult::not_asked) {
    const std::size_t sent = report.files.changed.size();
    const std::size_t removed = report.files.removed.size();
    std::string text = sent > 0 ? "rsync " + counted(sent, "file") : "rsync nothing new";
    if (!report.sent_by.empty()) {
      text += " from " + report.sent_by;
    }
    if (removed > 0) {
      text += fmt::format(", {} removed", removed);
    }
    if (request.dry_run) {
      text += " (dry run)";
    }
    parts.push_back(text);
  }
  if (report.package_source != "none") {
    add("packages", report.packages);
  }
  return join(parts, ", ");
}

json prepared_json(const PrepareResult& result) {
  json entry = {{"server", result.server}, {"ok", !result.error}};
  if (result.error) {
    put_error(entry, result.error);
    entry["hint"] = hint_of(*result.error);
    entry["log"] = or_null(result.log);
    return entry;
  }
  const PrepareReport& report = result.report;
  const auto step = [&entry](const char* name, StepResult done) {
    if (done != StepResult::not_asked) {
      entry[name] = step_word(done);
    }
  };
  step("setup", report.setup);
  step("packages", report.packages);
  entry["notes"] = report.notes;
  entry["shared_with"] = or_null(report.shared_with);
  if (report.sync != StepResult::not_asked) {
    entry["rsync"] = {{"changed", report.files.changed},   {"removed", report.files.removed},
                      {"newer", report.files.newer},       {"warnings", report.files.warnings},
                      {"differences", report.differences}, {"bytes", report.files.bytes},
                      {"from", or_null(report.sent_by)}};
  }
  return entry;
}

// What one server has to say. Returns whether all went well there.
bool show_server(Context& context, const PrepareResult& result, const PrepareRequest& request) {
  const std::string name = result.server + ": ";
  if (result.error) {
    return false;
  }
  const PrepareReport& report = result.report;
  for (const std::string& note : report.notes) {
    context.terminal.notice(name + visible_line(note));
  }
  for (const std::string& warning : report.files.warnings) {
    context.terminal.warning(name + visible_line(warning));
  }
  show_names(context, name + "not changed, newer on the server:", report.files.newer);
  if (request.dry_run) {
    show_names(context, name + "would send:", report.files.changed);
  }
  show_names(context, name + (request.dry_run ? "would remove:" : "removed:"), report.files.removed);
  show_names(context, name + "differs from here:", report.differences);
  return report.differences.empty();
}

// Says which servers have one folder.
void show_shared(Context& context, const std::vector<PrepareResult>& results, const std::string& title) {
  for (const PrepareResult& first : results) {
    std::vector<std::string> names;
    for (const PrepareResult& result : results) {
      if (&result == &first || (!result.error && result.report.shared_with == first.server)) {
        names.push_back(result.server);
      }
    }
    if (names.size() > 1) {
      context.terminal.notice(fmt::format("{} share one {}: {} once", enumerated(std::move(names)),
                                          common_place(first.report), title));
    }
  }
}

}  // namespace

void show_event(Context& context, const Event& event) {
  std::visit(EventText(context), event);
}

ui::Transfer as_transfer(const TransferProgress& progress) {
  ui::Transfer transfer;
  transfer.bytes = progress.bytes;
  if (progress.percent > 0) {
    // rsync tells whole percents, of all files of the project, also those that are there.
    transfer.total = std::max(progress.bytes, progress.bytes * 100 / static_cast<unsigned>(progress.percent));
  }
  transfer.bytes_per_second = progress.bytes_per_second;
  // At the end it is what has passed; and rsync says zero while files follow that it has not counted yet.
  transfer.left = progress.percent > 0 && progress.percent < 100 &&
                          progress.left.find_first_not_of("0:") != std::string::npos
                      ? progress.left
                      : std::string();
  return transfer;
}

PrepareScreen::PrepareScreen(Context& context, const std::vector<std::string>& servers,
                             const PrepareRequest& request, bool show_output)
    : context_(context), servers_(servers), progress_(context.terminal, servers, context.options.quiet) {
  if (context.stream) {
    context.stream->name_servers(servers);
  }
  const auto print = [&terminal = context.terminal, show_output, servers](std::size_t server,
                                                                          const std::string& line) {
    if (show_output && !line.empty()) {
      terminal.notice(servers[server] + " | " + visible_line(line));
    }
  };
  context.on_event = [this, request, print](const Event& event) {
    if (const auto* begun = std::get_if<StepBegun>(&event)) {
      progress_.step(begun->server, begun->other.empty() ? begun->name : "waiting for " + begun->other);
    } else if (const auto* detail = std::get_if<StepDetail>(&event)) {
      progress_.detail(detail->server, package_line(detail->text), detail->fraction);
      print(detail->server, detail->text);
    } else if (const auto* news = std::get_if<TransferNews>(&event)) {
      progress_.transfer(news->server, as_transfer(news->progress));
    } else if (const auto* prepared = std::get_if<ServerPrepared>(&event)) {
      for (const std::string& name : prepared->report.files.changed) {
        print(prepared->server, name);
      }
      progress_.done(prepared->server, summary(prepared->report, request));
    } else if (const auto* failed = std::get_if<ServerFailed>(&event)) {
      const std::string same = failures_.seen_on(servers_.at(failed->server), *failed);
      progress_.failed(failed->server, failed->error.message() + (same.empty() ? "" : ", as on " + same),
                       same.empty() ? failed->last_lines : "", failed->log);
    } else {
      context_.show(event);
    }
  };
}

PrepareScreen::~PrepareScreen() {
  context_.on_event = [&context = context_](const Event& event) { context.show(event); };
}

std::vector<PrepareResult> prepare_on_screen(Context& context, const PrepareRequest& request,
                                             bool show_output, bool yes) {
  context.project().require_trust();  // a question does not go with the screen
  if (request.sync && !request.dry_run) {
    confirm_size(context, context.project().first_sync(request.servers), yes);
  }
  std::future<std::string> skipped;
  if (request.sync) {
    skipped = std::async(std::launch::async, skipped_line, context.project().folder(), context.cancel);
  }
  std::vector<PrepareResult> results;
  {
    const PrepareScreen screen(context, context.project().server_names(request.servers), request,
                               show_output);
    results = context.project().prepare(request);
  }
  if (const std::string line = request.sync ? skipped.get() : ""; !line.empty()) {
    context.terminal.notice(line);
  }
  return results;
}

void send_project(Context& context, const std::vector<std::string>& servers) {
  PrepareRequest request;
  request.servers = servers;
  request.setup = false;
  request.packages = false;
  bool all = true;
  const std::vector<PrepareResult> results = prepare_on_screen(context, request, false, false);
  for (const PrepareResult& result : results) {
    show_server(context, result, request);
    all = all && !result.error;
  }
  if (!all) {
    show_hints(context, results);
    throw Error("nothing was started", "the project was not sent to all of the servers");
  }
}

int show_prepared(Context& context, const std::vector<PrepareResult>& results, const PrepareRequest& request,
                  const std::string& title) {
  json all = json::array();
  std::size_t failed = 0;
  bool left_alone = false;
  bool nothing_to_install = false;
  for (const PrepareResult& result : results) {
    all.push_back(prepared_json(result));
    failed += show_server(context, result, request) ? 0 : 1;
    left_alone = left_alone || !result.report.files.newer.empty();
    nothing_to_install = nothing_to_install || result.report.package_source == "none";
  }
  show_hints(context, results);
  show_shared(context, results, title);
  if (nothing_to_install) {
    context.terminal.notice(
        "nothing to install: no requirements.txt, Pipfile or pyproject.toml of a package");
  }
  if (left_alone) {
    context.terminal.notice(" hint: send them too with --overwrite");
  }
  if (context.options.json) {
    context.print(all);
  }
  if (results.size() > 1 || failed > 0) {
    const std::string done = request.dry_run ? "compared, nothing was sent"
                             : left_alone    ? title + " but for what is newer there"
                                             : title;
    context.terminal.notice(fmt::format("{} {}{}", counted(results.size() - failed, "server"), done,
                                        failed > 0 ? fmt::format(", {} failed", failed) : std::string()));
  }
  return failed > 0 ? 1 : 0;
}

}  // namespace remote::cli
