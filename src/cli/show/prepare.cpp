#include "cli/show/prepare.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "base/strings.hpp"
#include "base/visible.hpp"
#include "cli/show/events.hpp"
#include "cli/show/hint.hpp"

namespace remote::cli {
namespace {

using nlohmann::json;

std::string step_word(StepResult result) {
  return result == StepResult::done ? "done" : result == StepResult::skipped ? "already" : "";
}

std::string summary(const PrepareReport& report, const PrepareRequest& request) {
  std::vector<std::string> parts;
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
  std::string text;
  for (const std::string& part : parts) {
    text += (text.empty() ? "" : ", ") + part;
  }
  return text;
}

json to_json(const PrepareResult& result) {
  json entry = {{"server", result.server}, {"ok", !result.error}};
  if (result.error) {
    entry["error"] = result.error->message();
    entry["hint"] = hint_of(*result.error);
    entry["log"] = result.log.empty() ? json(nullptr) : json(result.log);
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
  if (report.sync != StepResult::not_asked) {
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

// What one server has to say. Returns whether all went well there.
bool show_server(Context& context, const PrepareResult& result, const PrepareRequest& request) {
  const std::string name = result.server + ": ";
  if (result.error) {
    if (const std::string hint = hint_of(*result.error); !hint.empty()) {
      context.terminal.err(" hint: " + name + hint + "\n");
    }
    return false;
  }
  const PrepareReport& report = result.report;
  for (const std::string& note : report.notes) {
    context.terminal.notice(name + visible_line(note));
  }
  for (const std::string& warning : report.files.warnings) {
    context.terminal.warning(name + visible_line(warning));
  }
  show_names(context, name + "left alone, newer on the server:", report.files.newer);
  if (request.dry_run) {
    show_names(context, name + "would send:", report.files.changed);
  }
  show_names(context, name + (request.dry_run ? "would remove:" : "removed:"), report.files.removed);
  show_names(context, name + "differs from here:", report.differences);
  return report.differences.empty();
}

}  // namespace

ui::Transfer as_transfer(const TransferProgress& progress) {
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

PrepareScreen::PrepareScreen(Context& context, const std::vector<std::string>& servers,
                             const PrepareRequest& request)
    : context_(context), progress_(context.terminal, servers, context.options.quiet) {
  context.on_event = [this, request](const Event& event) {
    if (const auto* begun = std::get_if<StepBegun>(&event)) {
      progress_.step(begun->server, begun->name);
    } else if (const auto* detail = std::get_if<StepDetail>(&event)) {
      progress_.detail(detail->server, detail->text, detail->fraction);
    } else if (const auto* news = std::get_if<TransferNews>(&event)) {
      progress_.transfer(news->server, as_transfer(news->progress));
    } else if (const auto* prepared = std::get_if<ServerPrepared>(&event)) {
      progress_.done(prepared->server, summary(prepared->report, request));
    } else if (const auto* failed = std::get_if<ServerFailed>(&event)) {
      progress_.failed(failed->server, failed->error.message(), failed->last_lines, failed->log);
    } else {
      context_.show(event);
    }
  };
}

PrepareScreen::~PrepareScreen() {
  context_.on_event = [&context = context_](const Event& event) { context.show(event); };
}

int show_prepared(Context& context, const std::vector<PrepareResult>& results, const PrepareRequest& request,
                  const std::string& title) {
  json all = json::array();
  std::size_t failed = 0;
  bool left_alone = false;
  for (const PrepareResult& result : results) {
    all.push_back(to_json(result));
    failed += show_server(context, result, request) ? 0 : 1;
    left_alone = left_alone || !result.report.files.newer.empty();
  }
  if (left_alone) {
    context.terminal.notice(" hint: send them too with --overwrite");
  }
  if (context.options.json) {
    context.terminal.out(dump_json(all));
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
