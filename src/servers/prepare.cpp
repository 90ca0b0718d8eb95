#include "servers/prepare.hpp"

#include <chrono>
#include <filesystem>
#include <set>

#include <remote/error.hpp>

#include "base/files.hpp"
#include "base/login_shell.hpp"
#include "base/strings.hpp"
#include "servers/action.hpp"
#include "servers/logs.hpp"
#include "servers/peers.hpp"
#include "servers/python_env.hpp"

namespace remote::servers {
namespace {

constexpr std::size_t shown_lines = 15;
// pip and conda print much, but not this much: it would fill the disk with logs.
constexpr std::size_t most_printed = std::size_t{64} << 20U;
constexpr std::size_t most_answered = std::size_t{1} << 20U;
constexpr std::chrono::seconds question_time{60};

// What the scripts that prepare a server say of themselves; the other lines are those of pip and conda.
struct ProvisionAnswer {
  PrepareListener& listener;
  std::set<std::string, std::less<>> have = {};  // what was found to be there
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
  std::set<std::string, std::less<>> ask();
  void run_step(const char* name, std::string_view file, const Script& variables);
  [[noreturn]] void fail(const char* name, const ProvisionAnswer& answer, const std::string& log = {});
  void setup(bool done);
  void sync();
  void add_part(const Peers::Part& part);
  void remove_partials();
  void remember(const SentFiles& sent, const std::vector<std::string>& gone);
  void packages(bool done);

  ssh::Connection& connection_;
  const config::Config& config_;
  const config::Server& server_;
  const PrepareSteps& steps_;
  PrepareListener& listener_;
  const Cancel& cancel_;
  PrepareReport report_;
};

Action<ProvisionAnswer> Preparation::action(std::string_view file, const Script& variables) const {
  Action<ProvisionAnswer> action;
  action.script = provision_variables(config_, server_);
  action.script.append(variables.text()).add("provision_common.sh").add(file);
  return action;
}

// `log` is the folder with all that was printed.
void Preparation::fail(const char* name, const ProvisionAnswer& answer, const std::string& log) {
  listener_.failed_output(last_lines(trim(answer.ended.err), shown_lines), log);
  throw Error(name,
              answer.failure.empty() ? "the script ended with " + answer.ended.describe() : answer.failure,
              answer.hint);
}

// Asks what is done already, and makes the project's folder. It leaves no log. It comes first and ends its
// input, so that a login shell that runs no scripts ends too.
std::set<std::string, std::less<>> Preparation::ask() {
  Script variables;
  variables.set("PACKAGES_DIGEST", packages_digest(config_)).call("set --", config_.system_packages);
  Action<ProvisionAnswer> question = action("provision_status.sh", variables);
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
  return std::move(answer.have);
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

void Preparation::setup(bool done) {
  if (done && !steps_.force) {
    report_.setup = StepResult::skipped;
    return;
  }
  listener_.step("setup");
  run_step(
      "setup", "provision_setup.sh",
      setup_variables(config_, steps_.default_python, steps_.force).call("set --", config_.system_packages));
  report_.setup = StepResult::done;
}

void Preparation::sync() {
  listener_.step("rsync");
  CommandLog log(config_, "rsync", server_.name);
  SyncOptions options = steps_.sync_options;
  options.on_progress = [this](const TransferProgress& progress) { listener_.transfer(progress); };
  options.log = [&log](ssh::Stream stream, std::string_view data) { log.write(stream, data); };
  const SentFiles sent(config_, server_, connection_.login());
  if (steps_.state.valid()) {
    // What changes from now on counts as not sent.
    const SentState before(config_, server_, connection_.login());
    options.checksum = options.checksum || rsync_would_miss(config_, before.mark(), steps_.state.get());
  }
  // It is here from a transfer's beginning to its end. No server has a name that begins with a dot.
  const std::filesystem::path unfinished = config_.local(".remote/sent/.unfinished." + server_.name);
  const bool was_unfinished = std::filesystem::exists(unfinished);
  try {
    if (!options.dry_run) {
      make_folders(unfinished.parent_path());
      write_file_atomic(unfinished, "");
    }
    if (steps_.remove) {
      options.remove = sent.gone_here(cancel_);
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
      remember(sent, options.remove);
      if (was_unfinished) {
        remove_partials();
      }
      std::filesystem::remove(unfinished);
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
  Action<ProvisionAnswer> removal = action("provision_partials.sh", Script());
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
void Preparation::remember(const SentFiles& sent, const std::vector<std::string>& gone) {
  std::vector<std::string> forgotten = report_.files.removed;
  forgotten.insert(forgotten.end(), report_.files.newer.begin(), report_.files.newer.end());
  if (report_.files.warnings.empty()) {  // else rsync may have removed nothing
    forgotten.insert(forgotten.end(), gone.begin(), gone.end());
  }
  try {
    sent.update(report_.files.changed, forgotten);
    if (steps_.state.valid()) {
      SentState(config_, server_, connection_.login()).remember(steps_.state.get());
    }
  } catch (const Error& error) {
    report_.notes.push_back("what was sent is not remembered, so no later sync removes it: " +
                            error.message());
  }
}

void Preparation::packages(bool done) {
  const PackageSource source = package_source(config_);
  report_.package_source = to_string(source);
  // Packages in an environment that was made anew just now are gone, whatever was found before.
  const bool still_done = done && report_.setup != StepResult::done;
  if ((still_done && !steps_.force) || source == PackageSource::none) {
    report_.packages = StepResult::skipped;
    return;
  }
  listener_.step("packages");
  run_step("update-packages", "provision_packages.sh", packages_variables(config_));
  report_.packages = StepResult::done;
}

PrepareReport Preparation::run() {
  connection_.expect({});
  const auto have = ask();
  if (steps_.setup) {
    setup(have.contains("setup"));
  }
  if (steps_.sync) {
    sync();
  }
  if (steps_.packages) {
    packages(have.contains("packages"));
  }
  return std::move(report_);
}

}  // namespace

PrepareReport prepare(ssh::Connection& connection, const config::Config& config, const config::Server& server,
                      const PrepareSteps& steps, PrepareListener& listener, const Cancel& cancel) {
  return Preparation(connection, config, server, steps, listener, cancel).run();
}

}  // namespace remote::servers
