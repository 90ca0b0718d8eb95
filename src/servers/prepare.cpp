#include "servers/prepare.hpp"

#include <chrono>
#include <filesystem>
#include <set>

#include <remote/error.hpp>

#include "base/files.hpp"
#include "base/login_shell.hpp"
#include "base/paths.hpp"
#include "base/strings.hpp"
#include "servers/action.hpp"
#include "servers/logs.hpp"
#include "servers/peers.hpp"
#include "servers/pip_hints.hpp"
#include "servers/python_env.hpp"
#include "servers/shared.hpp"
#include "servers/shell_text.hpp"
#include "ssh/pump.hpp"

namespace remote::servers {
namespace {

constexpr std::size_t shown_lines = 15;
// pip and conda print much, but not this much: it would fill the disk with logs.
constexpr std::size_t most_printed = std::size_t{64} << 20U;
constexpr std::size_t most_answered = std::size_t{1} << 20U;
constexpr std::chrono::seconds question_time{60};
constexpr std::chrono::milliseconds look_every{50};

// What the scripts that prepare a server say of themselves; the other lines are those of pip and conda.
struct ProvisionAnswer {
  PrepareListener& listener;
  std::set<std::string, std::less<>> have = {};  // what was found to be there
  std::string first = {};  // the server of this call that was the first to look into the project's folder
  std::vector<std::string> notes = {};
  std::string failure = {};
  std::string hint = {};
  ExecResult ended = {};

  void take(AnswerLine& line) {
    const std::string text(line.rest());
    if (line.kind() == "step") {
      listener.detail(text, std::nullopt);
    } else if (line.kind() == "have") {
      have.insert(text);
    } else if (line.kind() == "first") {
      first = text;
    } else if (line.kind() == "note") {
      notes.push_back(text);
    } else if (line.kind() == "fail") {
      failure = text;
    } else if (line.kind() == "hint") {
      hint = text;
    } else {
      line.refuse_kind();
    }
  }
  void other(std::string_view line) const {
    if (line = trim(line); !line.empty()) {
      listener.detail(std::string(line), std::nullopt);
    }
  }
  bool good() const { return ended.status.success() && failure.empty(); }
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
  Action<ProvisionAnswer> action(std::string_view file, const Script& variables) const;
  struct Found {
    std::set<std::string, std::less<>> have;
    std::string first;
  };
  Found ask(bool again = false);
  void run_step(const char* name, std::string_view file, const Script& variables);
  [[noreturn]] void fail(const char* name, const ProvisionAnswer& answer, const std::string& log = {});
  void do_steps(const Found& found);
  std::optional<SharedWork> shared_work(SharedFolders::Part& part, const std::string& first);
  void take_over(const SharedWork& work, const std::string& first);
  void setup(bool done, bool force);
  void sync();
  void add_part(const Peers::Part& part);
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
  std::vector<std::string> removable_;  // with --delete: what was to go
};

Action<ProvisionAnswer> Preparation::action(std::string_view file, const Script& variables) const {
  Action<ProvisionAnswer> action;
  action.script = provision_variables(config_, server_);
  // It may need files of the project: sending those goes without it.
  append_steps(action.script, variables);
  action.script.set("prologue", steps_.setup || steps_.packages ? prologue(config_, server_) : "").add(file);
  return action;
}

// `log` is the folder with all that was printed.
void Preparation::fail(const char* name, const ProvisionAnswer& answer, const std::string& log) {
  listener_.failed_output(last_lines(trim(answer.ended.err), shown_lines), log);
  throw Error(name,
              answer.failure.empty() ? "the script ended with " + answer.ended.describe() : answer.failure,
              answer.hint.empty() ? pip_hint(answer.ended.err) : answer.hint);
}

// Asks what is done already, and makes the project's folder. It leaves no log. It comes first and ends its
// input, so that a login shell that runs no scripts ends too.
Preparation::Found Preparation::ask(bool again) {
  Script variables;
  variables.set("PACKAGES_DIGEST", packages_digest(config_))
      .set("SHARE_TOKEN", steps_.shared != nullptr ? steps_.shared->token() : "")
      .set("SERVER", server_.name)
      .set("AGAIN", again ? "1" : "")
      .call("set --", config_.system_packages);
  Action<ProvisionAnswer> question = action("actions/provision_status.sh", variables);
  question.what = "what is prepared";
  question.max_output = most_answered;
  question.timeout = question_time;
  ProvisionAnswer answer = run_action(connection_, question, cancel_, ProvisionAnswer{listener_});
  if (!answer.failure.empty() || (!answer.good() && !answer.have.empty())) {
    fail("status", answer);
  }
  if (!answer.have.contains("status")) {
    throw login_shell_ended(answer.good() ? "" : answer.ended.describe());
  }
  return {std::move(answer.have), std::move(answer.first)};
}

// `name` names the log folder and the step in errors. When we go away, no pip and no installer stays behind.
void Preparation::run_step(const char* name, std::string_view file, const Script& variables) {
  Action<ProvisionAnswer> step = action(file, variables);
  CommandLog log(config_, name, server_.name);
  step.what = name;
  step.guarded = true;
  step.max_output = most_printed;
  step.log = [&log](ssh::Stream stream, std::string_view data) { log.write(stream, data); };
  std::optional<ProvisionAnswer> answer;
  try {
    answer.emplace(run_action(connection_, step, cancel_, ProvisionAnswer{listener_}));
  } catch (const Error& error) {
    log.give_up(error.message());
    throw;
  }
  log.finish(answer->ended.status);
  if (!answer->good()) {
    fail(name, *answer, log.folder().string());
  }
  report_.notes.insert(report_.notes.end(), answer->notes.begin(), answer->notes.end());
}

void Preparation::setup(bool done, bool force) {
  if (done && !force) {
    report_.setup = StepResult::skipped;
    return;
  }
  listener_.step(PrepareStep::setup);
  run_step("setup", "actions/provision_setup.sh",
           setup_variables(config_, steps_.default_python, force).call("set --", config_.system_packages));
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
    // What changes from now on counts as not sent.
    const ProjectState& state = steps_.state.get();
    const SentState before(config_, server_, connection_.login());
    options.checksum = options.checksum || rsync_would_miss(config_, before.mark(), state);
    options.leave.insert(options.leave.end(), state.keys().begin(), state.keys().end());
    options.leave.insert(options.leave.end(), state.pulled().begin(), state.pulled().end());
  }
  // It is here from a transfer's beginning to its end. No server has a name that begins with a dot.
  const std::filesystem::path unfinished = config_.local(".remote/sent/.unfinished." + server_.name);
  const bool was_unfinished = is_there(unfinished);
  try {
    if (!options.dry_run) {
      make_folders(unfinished.parent_path());
      write_file_atomic(unfinished, "");
    }
    if (steps_.remove) {
      removable_ = options.remove = sent.gone_here(cancel_);
    }
    std::optional<Peers::Part> part;
    if (steps_.peers != nullptr && !options.dry_run) {
      part.emplace(*steps_.peers, connection_, server_);
      part->take(
          options, [this](const std::string& text) { listener_.detail(text, std::nullopt); }, cancel_);
      options.checksum = options.checksum || part->unverified;
      listener_.detail({}, std::nullopt);
    }
    report_.files = sync_to(connection_, config_, server_, options, cancel_);
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
    }
    if (steps_.verify) {
      listener_.detail("comparing contents", std::nullopt);
      report_.differences = differences(connection_, config_, server_, options, cancel_);
    }
    log.finish(ExitStatus::exited(0));
  } catch (const Error& error) {
    log.give_up(error.message());
    listener_.failed_output("", log.folder().string());
    throw;
  }
}

// What is left of files that an earlier transfer did not finish: this one has sent them, or they are gone
// here.
void Preparation::remove_partials() {
  Action<ProvisionAnswer> removal = action("actions/provision_partials.sh", Script());
  removal.what = "remove what an interrupted transfer left";
  removal.max_output = most_answered;
  removal.timeout = question_time;
  try {
    run_action(connection_, removal, cancel_, ProvisionAnswer{listener_});
  } catch (const Error& error) {
    report_.notes.push_back(error.message());
  }
}

// What came from another server counts as sent.
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

// What --delete may take away the next time. What is newer on the server was written there since; and of
// `gone` nothing is left there now, so that whoever writes these names again is a job.
void Preparation::remember(const SentFiles& sent, const SyncReport& files,
                           const std::vector<std::string>& gone) {
  std::vector<std::string> forgotten = files.removed;
  forgotten.insert(forgotten.end(), files.newer.begin(), files.newer.end());
  if (files.warnings.empty()) {  // else rsync may have removed nothing
    forgotten.insert(forgotten.end(), gone.begin(), gone.end());
  }
  try {
    sent.update(files.changed, forgotten);
    const std::vector<std::string> others = SharedRecord(config_).others(server_.name);
    if (steps_.state.valid()) {
      SentState(config_, server_, connection_.login()).remember(steps_.state.get(), others);
    }
    for (const std::string& other : others) {
      SentFiles::forget(config_, other, forgotten);
    }
  } catch (const Error& error) {
    report_.notes.push_back("what was sent is not remembered, so no later sync removes it: " +
                            error.message());
  }
}

void Preparation::packages(bool done, bool force) {
  const PackageSource source = package_source(config_);
  report_.package_source = source;
  // Packages in an environment that was made anew just now are gone, whatever was found before.
  const bool still_done = done && report_.setup != StepResult::done;
  if ((still_done && !force) || source == PackageSource::none) {
    report_.packages = StepResult::skipped;
    return;
  }
  listener_.step(PrepareStep::packages);
  run_step("update-packages", "actions/provision_packages.sh", packages_variables(config_));
  report_.packages = StepResult::done;
}

void Preparation::do_steps(const Found& found) {
  if (steps_.setup) {
    setup(found.have.contains("setup"), steps_.force);
  }
  if (steps_.sync) {
    sync();
  }
  if (steps_.packages) {
    packages(found.have.contains("packages"), steps_.force);
  }
}

// Waits for the server that works on the folder. nullopt: this one is to do it.
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

// The folder is ready. What is not in it (an environment in a home of this server's own, packages of the
// distribution) is looked at once more, and done here.
void Preparation::take_over(const SharedWork& work, const std::string& first) {
  report_.shared_with = first;
  if (steps_.sync) {
    const SentFiles sent(config_, server_, connection_.login());
    remember(sent, work.report.files, work.removable);
    // This server's record may know of more that is gone here; an interrupted transfer of its own left parts.
    if ((steps_.remove && !sent.gone_here(cancel_).empty()) ||
        is_there(config_.local(".remote/sent/.unfinished." + server_.name))) {
      sync();
    }
    report_.sync = StepResult::done;
  }
  if (steps_.setup || steps_.packages) {
    const Found found = ask(true);
    if (steps_.setup) {
      setup(found.have.contains("setup"), false);
    }
    if (steps_.packages) {
      packages(found.have.contains("packages"), false);
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
    const Found found = ask();
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
