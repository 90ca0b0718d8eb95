#include "cli/show/prepare.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <future>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/group_by.hpp"
#include "base/json.hpp"
#include "base/paths.hpp"
#include "base/strings.hpp"
#include "cli/show/error_json.hpp"
#include "cli/show/events.hpp"
#include "project/excluded.hpp"

namespace remote::cli {
namespace {

using nlohmann::json;

constexpr std::uint64_t large_bytes = 1'000'000'000;
constexpr std::size_t many_files = 50'000;
constexpr std::size_t shown_parts = 5;

// Text and server.
using Remarks = std::vector<std::pair<std::string, std::string>>;

// Shows each text once, with the servers that share it.
void show_once(const Remarks& remarks, const std::function<void(const std::string&)>& show) {
  for (const auto& [text, indices] :
       group_by(remarks, [](const auto& remark) { return std::optional(remark.first); })) {
    std::vector<std::string> servers;
    for (const std::size_t i : indices) {
      servers.push_back(remarks[i].second);
    }
    show(enumerated(servers) + ": " + text);
  }
}

void show_hints(Context& context, const std::vector<PrepareResult>& results) {
  Remarks hints;
  for (const PrepareResult& result : results) {
    const std::string hint = result.error ? hint_of(*result.error) : std::string();
    if (!hint.empty()) {
      hints.emplace_back(hint, result.server);
    }
  }
  show_once(hints, [&](const std::string& line) { context.terminal.err(" hint: " + line + "\n"); });
}

// Shows the notes and warnings of the servers without an error.
void show_remarks(Context& context, const std::vector<PrepareResult>& results) {
  Remarks notes;
  Remarks warnings;
  for (const PrepareResult& result : results) {
    if (result.error) {
      continue;
    }
    for (const std::string& note : result.report.notes) {
      notes.emplace_back(visible_line(note), result.server);
    }
    for (const std::string& warning : result.report.files.warnings) {
      warnings.emplace_back(visible_line(warning), result.server);
    }
  }
  show_once(notes, [&](const std::string& line) { context.terminal.notice(line); });
  show_once(warnings, [&](const std::string& line) { context.terminal.warning(line); });
}

// Before a large transfer of missing files: shows the largest parts, and asks on a terminal unless `yes`.
// Throws Error if the answer is no.
void confirm_size(Context& context, const FirstSync& pending, bool yes) {
  if (pending.servers.empty() || (pending.bytes <= large_bytes && pending.files <= many_files)) {
    return;
  }
  context.terminal.notice(fmt::format("{} in {} new for {}:", size_text(pending.bytes),
                                      counted(pending.files, "file"), enumerated(pending.servers)));
  std::size_t shown = 0;
  for (const FirstSync::Part& part : pending.parts) {
    // Only parts with at least a twentieth of the bytes or of the files.
    if (shown < shown_parts && (part.bytes >= pending.bytes / 20 || part.files >= pending.files / 20)) {
      ++shown;
      context.terminal.notice(
          fmt::format("    {:>9}  {}{}", size_text(part.bytes), visible_line(part.name),
                      part.name.ends_with('/') ? ", " + counted(part.files, "file") : ""));
    }
  }
  context.terminal.notice(" hint: name files that the servers do not need in .remote/exclude.txt");
  if (yes || !context.terminal.stdin_is_terminal()) {
    return;
  }
  if (context.ask_yes_no("Send it?") != Answer::yes) {
    throw Error("nothing was sent", "not confirmed");
  }
}

// "skipped by exclude.txt: data/ (1.2 GB), model.pt (80.0 MB)"; "" if the user is unlikely to miss anything
// there.
std::string skipped_line(const std::filesystem::path& project, const Cancel& cancel) {
  const auto parts = project::skipped_parts(project, cancel);
  std::vector<std::string> names;
  for (const auto& part : parts) {
    names.push_back(fmt::format("{} ({}{})", visible_line(part.name), part.at_least ? "more than " : "",
                                size_text(part.bytes)));
  }
  return names.empty() ? "" : "skipped by exclude.txt: " + join_first(names, shown_parts);
}

std::string step_word(StepResult result) {
  return result == StepResult::done ? "done" : result == StepResult::skipped ? "already" : "";
}

// The shared place of the servers: "home" or "folder".
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
  if (report.package_source != PackageSource::none) {
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

// Shows the result of one server. Returns whether everything succeeded there.
bool show_server(Context& context, const PrepareResult& result, const PrepareRequest& request) {
  const std::string name = result.server + ": ";
  if (result.error) {
    return false;
  }
  const PrepareReport& report = result.report;
  show_names(context, name + "not changed, newer on the server:", report.files.newer);
  if (request.dry_run) {
    show_names(context, name + "would send:", report.files.changed);
  }
  show_names(context, name + (request.dry_run ? "would remove:" : "removed:"), report.files.removed);
  show_names(context, name + "differs from here:", report.differences);
  return report.differences.empty();
}

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

// The files that differ between these servers and this machine.
std::set<std::string> changed_here(Context& context, const std::vector<std::string>& servers) {
  PrepareRequest request;
  request.servers = servers;
  request.setup = false;
  request.packages = false;
  request.dry_run = true;
  const auto usual = std::exchange(context.on_event, [&](const Event& event) {
    if (std::holds_alternative<NewHostKey>(event) || std::holds_alternative<LoginProblem>(event)) {
      context.show(event);
    }
  });
  std::set<std::string> changed;
  for (const PrepareResult& result : context.project().prepare(request)) {
    if (!result.error) {  // otherwise the launch reports it
      changed.insert(result.report.files.changed.begin(), result.report.files.changed.end());
      changed.insert(result.report.files.newer.begin(), result.report.files.newer.end());
    }
  }
  context.on_event = usual;
  return changed;
}

}  // namespace

ui::Transfer as_transfer(const TransferProgress& progress) {
  ui::Transfer transfer;
  transfer.bytes = progress.bytes;
  if (progress.percent > 0) {
    // rsync reports whole percentages of all files in the project, including those already on the server.
    transfer.total = std::max(progress.bytes, progress.bytes * 100 / static_cast<unsigned>(progress.percent));
  }
  transfer.bytes_per_second = progress.bytes_per_second;
  // At the end, rsync reports the elapsed time instead; and it reports zero while there are files that it has
  // not counted yet.
  transfer.left = progress.percent > 0 && progress.percent < 100 ? progress.left : std::chrono::seconds(0);
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
      progress_.step(begun->server,
                     begun->other.empty() ? step_name(begun->step) : "waiting for " + begun->other);
    } else if (const auto* detail = std::get_if<StepDetail>(&event)) {
      if (const std::string line = package_line(detail->text); line.starts_with("waiting ")) {
        progress_.wait(detail->server, line);
      } else {
        progress_.detail(detail->server, line, detail->fraction);
      }
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
  context.project().require_trust();  // a question would disturb the live screen
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

namespace {

// The question got no answer because the input ended.
Error no_answer() {
  return Error("nothing was started", "the input ended before the question was answered",
               "--rsync copies first, --no-rsync launches without");
}

// Sends the project again, including files that are newer on a server, if the user agrees. Throws Error if
// the input ends before the answer. `must`: also if the user does not agree or cannot be asked.
void replace_newer(Context& context, const std::vector<PrepareResult>& results, PrepareRequest request,
                   bool must) {
  std::vector<Error> errors;
  request.servers.clear();
  for (const PrepareResult& result : results) {
    if (const auto& newer = result.report.files.newer; !newer.empty()) {
      request.servers.push_back(result.server);
      const bool one = newer.size() == 1;
      errors.push_back(
          Error("cannot send the project",
                fmt::format("{} {} newer there than here, and {} not sent from here",
                            join(first_lines(newer, 3), ", "), one ? "is" : "are", one ? "was" : "were"))
              .mended_by(Remedy::overwrite_files)
              .on(result.server));
    }
  }
  if (errors.empty()) {
    return;
  }
  const bool can_ask =
      !context.options.json && context.terminal.stdin_is_terminal() && context.terminal.stderr_is_terminal();
  const Answer answer = can_ask ? context.ask_yes_no("Replace them with the files here?") : Answer::no;
  if (answer == Answer::yes) {
    request.overwrite = true;
    for (const PrepareResult& result : prepare_on_screen(context, request, false, false)) {
      if (result.error) {
        throw Error("nothing was started", "the project was not sent to all of the servers");
      }
    }
    return;
  }
  context.cancel.check();
  if (answer == Answer::none && !must) {
    throw no_answer();
  }
  if (must) {
    context.show(PartsFailed{errors});
    throw Error("nothing was started", "the servers have different code than this machine",
                "to run the servers' version, launch without copying the project");
  }
}

}  // namespace

void send_project(Context& context, const std::vector<std::string>& servers, bool must) {
  PrepareRequest request;
  request.servers = servers;
  request.setup = false;
  request.packages = false;
  bool all = true;
  const std::vector<PrepareResult> results = prepare_on_screen(context, request, false, false);
  show_remarks(context, results);
  for (const PrepareResult& result : results) {
    show_server(context, result, request);
    all = all && !result.error;
  }
  if (!all) {
    show_hints(context, results);
    throw Error("nothing was started", "the project was not sent to all of the servers");
  }
  replace_newer(context, results, request, must);
}

void copy_first(Context& context, const std::vector<std::string>& servers, bool ask) {
  try {
    if (ask) {
      const std::set<std::string> changed = changed_here(context, servers);
      if (changed.empty()) {
        return;
      }
      const Answer answer = context.ask_yes_no(
          fmt::format("{} changed since the last sync ({}). Copy first?", counted(changed.size(), "file"),
                      join(first_lines({changed.begin(), changed.end()}, 3), ", ")),
          Answer::yes);
      if (answer == Answer::none) {
        throw no_answer();
      }
      if (answer == Answer::no) {
        return;
      }
    }
    send_project(context, servers, !ask);
  } catch (const Interrupted&) {
    context.when_interrupted = "interrupted before the launch: no rank was started";
    throw;
  }
}

int show_prepared(Context& context, const std::vector<PrepareResult>& results, const PrepareRequest& request,
                  const std::string& title) {
  json all = json::array();
  std::size_t failed = 0;
  bool left_alone = false;
  bool nothing_to_install = false;
  show_remarks(context, results);
  for (const PrepareResult& result : results) {
    all.push_back(prepared_json(result));
    failed += show_server(context, result, request) ? 0 : 1;
    left_alone = left_alone || !result.report.files.newer.empty();
    nothing_to_install = nothing_to_install || result.report.package_source == PackageSource::none;
  }
  show_hints(context, results);
  show_shared(context, results, title);
  if (nothing_to_install) {
    context.terminal.notice(
        "nothing to install: no requirements.txt, Pipfile or pyproject.toml of a package");
    for (const char* name : {"environment.yml", "environment.yaml"}) {
      if (is_there(context.folder() / name)) {
        context.terminal.notice(
            fmt::format(" hint: {} is not read: list its packages in requirements.txt, or name an "
                        "environment that was made "
                        "from it on the servers: python: {{environment: ~/miniconda3/envs/NAME}}",
                        name));
      }
    }
  }
  if (left_alone) {
    context.terminal.notice(" hint: send them too with --overwrite");
  }
  if (context.options.json) {
    context.print(all);
  }
  if (results.size() > 1 || failed > 0) {
    const std::string done = request.dry_run ? "compared, nothing was sent"
                             : left_alone    ? title + " except for files that are newer there"
                                             : title;
    context.terminal.notice(fmt::format("{} {}{}", counted(results.size() - failed, "server"), done,
                                        failed > 0 ? fmt::format(", {} failed", failed) : std::string()));
  }
  return failed > 0 ? 1 : 0;
}

}  // namespace remote::cli
