#include "servers/prepare.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <iterator>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <remote/error.hpp>

#include "base/command.hpp"
#include "base/files.hpp"
#include "base/paths.hpp"
#include "base/strings.hpp"
#include "servers/agent.hpp"
#include "servers/disk_hints.hpp"
#include "servers/facts.hpp"
#include "servers/logs.hpp"
#include "servers/peers.hpp"
#include "servers/pip_hints.hpp"
#include "servers/python_env.hpp"
#include "servers/shared.hpp"
#include "servers/source.hpp"
#include "ssh/pump.hpp"
#include "wire/cbor.hpp"

namespace remote::servers {
namespace {

constexpr std::size_t shown_lines = 15;
// pip and conda print a lot, but not this much, which would fill the disk with logs.
constexpr std::size_t most_printed = std::size_t{64} << 20U;
constexpr std::chrono::seconds question_time{60};
constexpr std::chrono::milliseconds look_every{50};

// Collects the parts of an answer, and reports the progress.
class ProvisionAnswer {
 public:
  ProvisionAnswer(PrepareListener& listener, CommandLog& log) : listener_(listener), log_(log) {}

  // Throws Error.
  void take(wire::ProvisionReply part) {
    received_ += part.out.size() + part.errors.size();
    if (received_ > most_printed) {
      throw Error("too much output", fmt::format("the server sent more than {} MB", most_printed >> 20U))
          .mended_by(Remedy::tell_more);
    }
    if (!part.step.empty()) {
      listener_.detail(part.step, std::nullopt);
    }
    if (!part.note.empty()) {
      notes.push_back(std::move(part.note));
    }
    if (!part.out.empty()) {
      log_.write(ssh::Stream::out, out_mask_.take(part.out));
      lines_.add(part.out, [this](std::string_view line) {
        if (line = trim(line); !line.empty()) {
          listener_.detail(mask_line(std::string(line)), std::nullopt);
        }
      });
    }
    if (!part.errors.empty()) {
      take_errors(err_mask_.take(part.errors));
    }
    if (part.end) {
      log_.write(ssh::Stream::out, out_mask_.finish());
      take_errors(err_mask_.finish());
      end = std::move(part.end);
    }
  }

  std::vector<std::string> notes{};
  std::string errors{};  // the end of stderr
  std::optional<wire::ProvisionEnd> end{};

 private:
  void take_errors(const std::string& text) {
    log_.write(ssh::Stream::err, text);
    append_end(errors, text);
  }

  PrepareListener& listener_;
  CommandLog& log_;
  LineCutter lines_{};
  // pip prints the addresses of packages and indexes, which may contain a password.
  OutputMask out_mask_{};
  OutputMask err_mask_{};
  std::size_t received_ = 0;
};

class Preparation {
 public:
  Preparation(ssh::Connection& connection, const config::Config& config, const config::Server& server,
              const PrepareSteps& steps, PrepareListener& listener, const Cancel& cancel)
      : connection_(connection),
        config_(config),
        server_(server),
        steps_(steps),
        listener_(listener),
        cancel_(cancel) {}

  PrepareReport run();

 private:
  wire::PreparedReply ask(bool again = false);
  void note_source(const wire::PreparedReply& found);
  bool is_from_here(const std::optional<wire::ProjectSource>& source) const;
  std::optional<wire::ProjectSource> record_source(const std::optional<wire::ProjectSource>& source);
  void begin_sending();
  void end_sending(bool has_changed);
  wire::ManagedPython python() const;
  void run_step(const char* name, const wire::Provisioning& work);
  [[noreturn]] void fail(const char* name, const wire::ProvisionFailure& failure, std::string_view errors,
                         const std::string& log = {});
  void do_steps(const wire::PreparedReply& found);
  std::optional<SharedWork> shared_work(SharedFolders::Part& part, const std::string& first);
  void take_over(const SharedWork& work, const std::string& first);
  void setup(bool done, bool force);
  void sync();
  void add_part(const Peers::Part& part);
  std::set<std::string> unchanged_there(const std::vector<std::string>& names);
  void judge_newer(SyncOptions options);
  void remove_partials();
  void remember(const SentFiles& sent, const SyncReport& files, const std::vector<std::string>& gone);
  void packages(bool done, bool force);

  ssh::Connection& connection_;
  const config::Config& config_;
  const config::Server& server_;
  const PrepareSteps& steps_;
  PrepareListener& listener_;
  const Cancel& cancel_;
  PrepareReport report_;
  std::vector<std::string> removable_;  // for --delete: the names to remove
  bool is_sender_ = false;              // this folder was the last sender
  bool is_old_ = false;                 // and long ago
  bool has_replaced_sender_ = false;    // begin_sending() has replaced this one:
  std::optional<wire::ProjectSource> former_;
};

// The prologue may need files of the project, so sending them does not run it.
wire::ManagedPython Preparation::python() const {
  return managed_python(config_, server_, steps_.setup || steps_.packages);
}

// `log` is the folder with the complete output.
void Preparation::fail(const char* name, const wire::ProvisionFailure& failure, std::string_view errors,
                       const std::string& log) {
  const std::string_view printed = trim(errors);
  const bool is_short = static_cast<std::size_t>(std::ranges::count(printed, '\n')) < shown_lines;
  const std::string decisive = is_short ? "" : decisive_lines(printed, shown_lines);
  listener_.failed_output(decisive.empty() ? last_lines(printed, shown_lines) : decisive, log);
  if (failure.lacks_environment) {
    throw Error(name, no_environment).mended_by(Remedy::prepare_servers);
  }
  const bool own = config_.python.manager == config::PythonManager::venv ||
                   config_.python.manager == config::PythonManager::uv;
  std::string hint;
  if (failure.hint.empty() || says_disk_full(errors)) {
    hint = pip_hint(errors, own, failure.disks);
    hint = hint.empty() ? disk_hint(failure.reason) : hint;
    hint = hint.empty() ? output_disk_hint(decisive_lines(printed, shown_lines)) : hint;
  }
  throw Error(name, mask_line(failure.reason), hint.empty() ? failure.hint : hint);
}

// Creates the project's folder, and returns which steps are already done. Writes no log.
wire::PreparedReply Preparation::ask(bool again) {
  const wire::PreparedRequest request{.python = python(),
                                      .share_token = steps_.shared != nullptr ? steps_.shared->token() : "",
                                      .server = server_.name,
                                      .is_repeated = again,
                                      .is_sending = !again && steps_.source};
  auto reply = take_reply<wire::PreparedReply>(ask_agent(
      connection_, {.what = "what is prepared", .request = request, .timeout = question_time}, cancel_));
  if (reply.failure) {
    fail("status", *reply.failure, reply.errors);
  }
  return reply;
}

// Notes whose project the server had, and which of its jobs use the files that are about to be replaced.
void Preparation::note_source(const wire::PreparedReply& found) {
  if (!steps_.source) {
    return;
  }
  constexpr int recent_s = 600;
  const bool is_own = is_sender_ = is_from_here(found.source);
  is_old_ = is_own && steps_.source->at - found.source->at > recent_s;
  // The record is for another address, user or folder.
  if (SentState(config_, server_, connection_.login()).mark().never() &&
      !last_sent(config_, server_.name).files().empty()) {
    report_.notes.push_back(
        is_own ? "its address is new, and its disk is the same as before: the project there was sent " +
                     sent_by_text(*found.source, *steps_.source)
               : "its address, user or folder is new, and nothing was sent there from here");
  }
  if (found.source && !is_own) {
    report_.notes.push_back("the project there was sent " + sent_by_text(*found.source, *steps_.source));
  }
  const auto unknown = std::ranges::count_if(found.running, std::not_fn(steps_.knows_job));
  if (unknown > 0) {
    report_.notes.push_back(fmt::format("{} that {} not started from here {} in its folder",
                                        counted(static_cast<std::size_t>(unknown), "job"),
                                        unknown == 1 ? "was" : "were", unknown == 1 ? "runs" : "run"));
  }
}

bool Preparation::is_from_here(const std::optional<wire::ProjectSource>& source) const {
  return source && source->folder_id == steps_.source->folder_id;
}

// Replaces the server's record of the sender, and returns the previous one. Throws Error.
std::optional<wire::ProjectSource> Preparation::record_source(
    const std::optional<wire::ProjectSource>& source) {
  const wire::RecordSourceRequest request{scripts_folder(config_, server_), source};
  auto reply = take_reply<wire::RecordSourceReply>(ask_agent(
      connection_, {.what = "sender of the project", .request = request, .timeout = question_time}, cancel_));
  return std::move(reply.former);
}

// Records this folder as the sender before the transfer, because an interrupted one changes files, too.
void Preparation::begin_sending() {
  if (steps_.source && !is_sender_) {
    former_ = record_source(steps_.source);
    // Not if another server that shares the folder has recorded this sender.
    has_replaced_sender_ = !is_from_here(former_);
  }
}

// A transfer that has changed nothing leaves the previous sender. The time in an own record is updated only
// if it is old, because that takes a request.
void Preparation::end_sending(bool has_changed) {
  if (!steps_.source || has_changed == has_replaced_sender_ || (has_changed && !is_old_)) {
    return;
  }
  try {
    record_source(has_changed ? steps_.source : former_);
  } catch (const Error& error) {
    report_.notes.push_back("the sender of the project was not recorded: " + error.message());
  }
}

// `name` is the name of the log folder, and of the step in errors. If the client exits, the agent stops pip
// and installers.
void Preparation::run_step(const char* name, const wire::Provisioning& work) {
  CommandLog log(config_, name, server_.name);
  ProvisionAnswer answer(listener_, log);
  const wire::Bytes data = wire::encode(work);
  try {
    ask_agent(
        connection_,
        {.what = name, .request = wire::ProvisionRequest{}, .data = std::string(data.begin(), data.end())},
        [&answer](wire::Reply reply) { answer.take(take_reply<wire::ProvisionReply>(std::move(reply))); },
        cancel_);
    if (!answer.end) {
      throw Error("the server's answer is cut short", "its end is missing").mended_by(Remedy::tell_more);
    }
  } catch (const Error& error) {
    log.give_up(error.message());
    throw;
  }
  log.finish(ExitStatus::exited(answer.end->failure ? 1 : 0));
  if (answer.end->failure) {
    fail(name, *answer.end->failure, answer.errors, log.folder().string());
  }
  report_.notes.insert(report_.notes.end(), answer.notes.begin(), answer.notes.end());
}

void Preparation::setup(bool done, bool force) {
  if (done && !force) {
    report_.setup = StepResult::skipped;
    return;
  }
  listener_.step(PrepareStep::setup);
  run_step("setup", {.python = python(), .setup = setup_request(config_, steps_.default_python, force)});
  report_.setup = StepResult::done;
}

void Preparation::sync() {
  listener_.step(PrepareStep::sync);
  CommandLog log(config_, "rsync", server_.name);
  SyncOptions options = steps_.sync_options;
  options.on_progress = [this](const TransferProgress& progress) { listener_.transfer(progress); };
  options.log = [&log](ssh::Stream stream, std::string_view data) { log.write(stream, data); };
  const SentFiles sent(config_, server_, connection_.login());
  if (steps_.state.valid()) {
    // Changes from now on count as not sent.
    const ProjectState& state = steps_.state.get();
    const SentState before(config_, server_, connection_.login());
    options.checksum = options.checksum || rsync_would_miss(config_, before.mark(), state);
    options.leave.insert(options.leave.end(), state.keys().begin(), state.keys().end());
    options.leave.insert(options.leave.end(), state.pulled().begin(), state.pulled().end());
  }
  // This file exists during a transfer. No server name begins with a dot.
  const std::filesystem::path unfinished = config_.local(".remote/sent/.unfinished." + server_.name);
  const bool was_unfinished = is_there(unfinished);
  bool has_pulled = false;
  const auto has_changed = [&] {
    return has_pulled || !report_.files.changed.empty() || !report_.files.removed.empty();
  };
  try {
    if (!options.dry_run) {
      make_folders(unfinished.parent_path());
      write_file_atomic(unfinished, "");
    }
    if (steps_.remove) {
      removable_ = options.remove = sent.gone_here(cancel_);
    }
    begin_sending();
    std::optional<Peers::Part> part;
    if (steps_.peers != nullptr && !options.dry_run) {
      part.emplace(*steps_.peers, connection_, server_);
      part->take(
          options, [this](const std::string& text) { listener_.detail(text, std::nullopt); }, cancel_);
      options.checksum = options.checksum || part->unverified;
      has_pulled = !part->files.changed.empty();
      listener_.detail({}, std::nullopt);
    }
    sync_to(connection_, config_, server_, options, cancel_, report_.files);
    judge_newer(options);
    report_.sync = StepResult::done;
    if (part) {
      part->pass_on(report_.files.newer);
      add_part(*part);
    }
    if (!options.dry_run) {
      remember(sent, report_.files, options.remove);
      if (was_unfinished) {
        remove_partials();
      }
      remove_file(unfinished);
      end_sending(has_changed());
    }
    if (steps_.verify) {
      listener_.detail("comparing contents", std::nullopt);
      report_.differences = differences(connection_, config_, server_, options, cancel_);
    }
    log.finish(ExitStatus::exited(0));
  } catch (const Error& error) {
    log.give_up(error.message());
    listener_.failed_output("", log.folder().string());
    if (dynamic_cast<const ssh::Unreachable*>(&error) == nullptr) {
      end_sending(has_changed());
    }
    throw;
  }
}

// Those of these files that are still on the server as they were sent.
std::set<std::string> Preparation::unchanged_there(const std::vector<std::string>& names) {
  const ProjectState sent = SentState(config_, server_, connection_.login()).files();
  FactsRequest request{.wanted = {.project = config_.project_path_on(server_), .code = true}};
  std::set<std::string> unchanged;
  for (const std::string& name : names) {
    if (const FileStamp* stamp = sent.find(name)) {
      request.files += stamp->line();
      unchanged.insert(name);
    }
  }
  if (unchanged.empty()) {
    return {};
  }
  std::optional<wire::CodeFacts> code;
  try {
    code = ask_facts(connection_, request, cancel_).code;
  } catch (const ssh::Unreachable&) {
    throw;
  } catch (const Error&) {  // so they count as changed
  }
  if (!code || code->count > code->files.size()) {
    return {};
  }
  for (const wire::ChangedFile& file : code->files) {
    unchanged.erase(file.name);
  }
  return unchanged;
}

// rsync has skipped files that are newer on the server. If a file is still as this machine sent it, it is
// replaced, because here it was reset to an older version. Of the others, those with the same content are
// dropped from the list.
void Preparation::judge_newer(SyncOptions options) {
  std::vector<std::string>& newer = report_.files.newer;
  if (newer.empty()) {
    return;
  }
  const std::set<std::string> ours = unchanged_there(newer);
  options.update = false;
  options.remove.clear();
  if (!ours.empty()) {
    options.names.assign(ours.begin(), ours.end());
    sync_to(connection_, config_, server_, options, cancel_, report_.files);
    std::erase_if(newer, [&](const std::string& name) { return ours.contains(name); });
  }
  // rsync prints control characters as \#012, so such a name cannot be passed back to it.
  const auto has_escape = [](const std::string& name) { return name.find("\\#") != std::string::npos; };
  options.names.clear();
  std::ranges::copy_if(newer, std::back_inserter(options.names), std::not_fn(has_escape));
  if (options.names.empty()) {
    return;
  }
  const auto differ = differences(connection_, config_, server_, options, cancel_);
  const std::set<std::string> other(differ.begin(), differ.end());
  const auto is_other = [&](const std::string& name) { return has_escape(name) || other.contains(name); };
  std::erase_if(options.names, is_other);
  std::erase_if(newer, std::not_fn(is_other));
  if (!options.names.empty()) {  // they get this machine's times, so that next time their contents need not
                                 // be compared
    options.checksum = true;
    sync_to(connection_, config_, server_, options, cancel_);
  }
}

// Removes partial files of an interrupted transfer. This transfer has sent these files, or they no longer
// exist here.
void Preparation::remove_partials() {
  const wire::RemovePartialsRequest request{.project = config_.project_path_on(server_)};
  try {
    take_reply<wire::RemovePartialsReply>(ask_agent(
        connection_, {.what = "removal of partial files", .request = request, .timeout = question_time},
        cancel_));
  } catch (const Error& error) {
    report_.notes.push_back(error.message());
  }
}

// Files that were copied from another server count as sent.
void Preparation::add_part(const Peers::Part& part) {
  if (!part.why.empty()) {
    report_.notes.push_back(part.why + "; sent from here");
  }
  report_.sent_by = part.files.changed.empty() ? std::string() : part.from;
  std::set<std::string> names(report_.files.changed.begin(), report_.files.changed.end());
  for (const std::string& name : part.files.changed) {
    if (names.insert(name).second) {
      report_.files.changed.push_back(name);
    }
  }
  report_.files.bytes += part.files.bytes;
}

// Records what --delete may remove next time. Excludes files that are newer on the server, because they were
// written there, and the names in `gone`: none of them are left there now, so if they reappear, a job has
// written them.
void Preparation::remember(const SentFiles& sent, const SyncReport& files,
                           const std::vector<std::string>& gone) {
  std::vector<std::string> forgotten = files.removed;
  forgotten.insert(forgotten.end(), files.newer.begin(), files.newer.end());
  if (files.warnings.empty()) {  // otherwise rsync may have removed nothing
    forgotten.insert(forgotten.end(), gone.begin(), gone.end());
  }
  try {
    sent.update(files.changed, forgotten);
    const std::vector<std::string> others = SharedRecord(config_).others(server_.name);
    if (steps_.state.valid()) {
      SentState(config_, server_, connection_.login())
          .remember(steps_.state.get().without(files.newer), others);
    }
    for (const std::string& other : others) {
      SentFiles::forget(config_, other, forgotten);
    }
  } catch (const Error& error) {
    report_.notes.push_back("the list of sent files was not saved, so no later sync removes them: " +
                            error.message());
  }
}

void Preparation::packages(bool done, bool force) {
  const PackageSource source = package_source(config_);
  report_.package_source = source;
  // If the environment was just recreated, its packages are gone, whatever was found before.
  const bool still_done = done && report_.setup != StepResult::done;
  if ((still_done && !force) || source == PackageSource::none) {
    report_.packages = StepResult::skipped;
    return;
  }
  listener_.step(PrepareStep::packages);
  run_step("update-packages", {.python = python(), .packages = packages_request(config_)});
  report_.packages = StepResult::done;
}

void Preparation::do_steps(const wire::PreparedReply& found) {
  if (steps_.setup) {
    setup(found.has_setup, steps_.force);
  }
  if (steps_.sync) {
    sync();
  }
  if (steps_.packages) {
    packages(found.has_packages, steps_.force);
  }
}

// Waits for the server that works on the shared folder. nullopt: this server has to do it.
std::optional<SharedWork> Preparation::shared_work(SharedFolders::Part& part, const std::string& first) {
  if (!part.waits_for(first)) {
    return std::nullopt;
  }
  listener_.waits_for(part.first());
  for (;;) {
    if (auto work = part.look(); work || !part.waits()) {
      return work;
    }
    ssh::Pump(connection_, cancel_).wait(look_every);
  }
}

// The shared folder is ready. Checks the parts that are not in it (an environment in this server's own home
// directory, packages of the distribution) once more, and does them here.
void Preparation::take_over(const SharedWork& work, const std::string& first) {
  report_.shared_with = first;
  if (steps_.sync) {
    const SentFiles sent(config_, server_, connection_.login());
    remember(sent, work.report.files, work.removable);
    // This server's record may list more files that no longer exist here, and an interrupted transfer of its
    // own may have left partial files.
    if ((steps_.remove && !sent.gone_here(cancel_).empty()) ||
        is_there(config_.local(".remote/sent/.unfinished." + server_.name))) {
      sync();
    }
    report_.sync = StepResult::done;
  }
  if (steps_.setup || steps_.packages) {
    const wire::PreparedReply found = ask(true);
    if (steps_.setup) {
      setup(found.has_setup, false);
    }
    if (steps_.packages) {
      packages(found.has_packages, false);
    }
  }
}

PrepareReport Preparation::run() {
  connection_.expect({});
  std::optional<SharedFolders::Part> part;
  if (steps_.shared != nullptr) {
    part.emplace(*steps_.shared, server_.name);
  }
  report_.shared_home = config_.project_path_on(server_).starts_with("~/");
  try {
    const wire::PreparedReply found = ask();
    note_source(found);
    const auto work = part ? shared_work(*part, found.first) : std::nullopt;
    if (work) {
      take_over(*work, part->first());
    } else {
      do_steps(found);
    }
    if (part) {
      part->done({report_, removable_});
    }
  } catch (const Error& error) {
    if (part) {
      part->failed(dynamic_cast<const ssh::Unreachable*>(&error) != nullptr);
    }
    throw;
  }
  return std::move(report_);
}

}  // namespace

PrepareReport prepare(ssh::Connection& connection, const config::Config& config, const config::Server& server,
                      const PrepareSteps& steps, PrepareListener& listener, const Cancel& cancel) {
  return Preparation(connection, config, server, steps, listener, cancel).run();
}

}  // namespace remote::servers
