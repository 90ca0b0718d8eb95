#include "servers/prepare.hpp"

#include <chrono>
#include <set>

#include <fmt/format.h>
#include <remote/error.hpp>

#include "base/login_shell.hpp"
#include "base/shell_quote.hpp"
#include "base/strings.hpp"
#include "scripts/scripts.hpp"
#include "servers/answers.hpp"
#include "servers/logs.hpp"
#include "servers/packages.hpp"
#include "servers/peers.hpp"
#include "servers/python_env.hpp"
#include "servers/run_command.hpp"
#include "servers/sent_files.hpp"

namespace remote::servers {
namespace {

constexpr std::size_t shown_lines = 15;
constexpr std::size_t max_error_text = 65536;
// pip and conda print much, but not this much: it would fill the disk with logs.
constexpr std::size_t most_printed = std::size_t{64} << 20U;
constexpr std::size_t most_answered = std::size_t{1} << 20U;
constexpr std::chrono::seconds question_time{60};

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
  Answers run_script(const char* name, const std::string& script, const std::string& variables);
  void setup(bool done);
  void sync();
  void add_part(const Peers::Part& part);
  void remember(const SentFiles& sent, const std::vector<std::string>& gone);
  void packages(bool done);
  std::string system_packages() const;
  void add_notes(const Answers& answers);

  ssh::Connection& connection_;
  const config::Config& config_;
  const config::Server& server_;
  const PrepareSteps& steps_;
  PrepareListener& listener_;
  const Cancel& cancel_;
  PrepareReport report_;
};

std::string Preparation::system_packages() const {
  return "set -- " + shell_join(config_.system_packages) + "\n";
}

void Preparation::add_notes(const Answers& answers) {
  const std::vector<std::string> notes = answers.all("note");
  report_.notes.insert(report_.notes.end(), notes.begin(), notes.end());
}

// `name` names the log folder and the step in errors.
Answers Preparation::run_script(const char* name, const std::string& script, const std::string& variables) {
  Answers answers([this](std::string_view line) {
    if (line = trim(line); !line.empty()) {
      listener_.detail(std::string(line), std::nullopt);
    }
  });
  CommandLog log(config_, name, server_.name);
  std::string errors;
  ssh::ExecRequest request;
  const std::string text = provision_variables(config_, server_) + variables +
                           std::string(scripts::text("provision_common.sh")) +
                           std::string(scripts::text(script));
  const bool is_question = script == "provision_status.sh";  // asks, changes nothing: leaves no log
  request.what = is_question ? "what is prepared" : name;
  request.max_output = is_question ? most_answered : most_printed;
  request.timeout = is_question ? question_time : std::chrono::seconds(0);
  // When we go away, no pip and no installer stays behind. The question comes first and ends its input: a
  // login shell that runs no scripts then ends, too.
  request.input = is_question ? ssh::wrap_script(text) : guarded_script(text);
  request.keep_input = !is_question;
  request.sink = [&](ssh::Stream stream, std::string_view data) {
    if (!is_question) {
      log.write(stream, data);
    }
    if (stream == ssh::Stream::out) {
      answers.add(data);
      return;
    }
    errors += data;
    if (errors.size() > 2 * max_error_text) {
      errors.erase(0, errors.size() - max_error_text);
    }
  };
  std::optional<ExecResult> result;
  try {
    result = connection_.exec(request, cancel_);
  } catch (const Error& error) {
    if (!is_question) {
      log.give_up(error.message());
    }
    throw;
  }
  const std::string failure = answers.last("fail");
  if (result->status.success() && failure.empty()) {
    if (!is_question) {
      log.finish(result->status);
    }
    return answers;
  }
  log.finish(result->status);
  if (is_question && !answers.begun()) {
    throw login_shell_ended(result->status.describe());
  }
  listener_.failed_output(last_lines(trim(errors), shown_lines), log.folder().string());
  const std::string reason = failure.empty()
                                 ? fmt::format("the script ended with {}: {}", result->status.describe(),
                                               last_lines(trim(errors), 3))
                                 : failure;
  throw Error(name, reason, answers.last("hint"));
}

void Preparation::setup(bool done) {
  if (done && !steps_.force) {
    report_.setup = StepResult::skipped;
    return;
  }
  listener_.step("setup");
  const Answers answers =
      run_script("setup", "provision_setup.sh",
                 setup_variables(config_, steps_.default_python, steps_.force) + system_packages());
  add_notes(answers);
  report_.setup = StepResult::done;
}

void Preparation::sync() {
  listener_.step("rsync");
  CommandLog log(config_, "rsync", server_.name);
  SyncOptions options = steps_.sync_options;
  options.parents_exist = true;  // the question made the project's folder
  options.on_progress = [this](const TransferProgress& progress) { listener_.transfer(progress); };
  options.log = [&log](ssh::Stream stream, std::string_view data) { log.write(stream, data); };
  const SentFiles sent(config_, server_, connection_.login());
  try {
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
  } catch (const Error& error) {
    report_.notes.push_back("what was sent is not remembered for --delete: " + error.message());
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
  const Answers answers =
      run_script("update-packages", "provision_packages.sh", packages_variables(config_, server_));
  add_notes(answers);
  report_.packages = StepResult::done;
}

PrepareReport Preparation::run() {
  connection_.expect({});
  const Answers answers =
      run_script("status", "provision_status.sh",
                 "PACKAGES_DIGEST=" + packages_digest(config_) + "\n" + system_packages());
  if (!answers.has("have", "status")) {
    throw login_shell_ended();
  }
  if (steps_.setup) {
    setup(answers.has("have", "setup"));
  }
  if (steps_.sync) {
    sync();
  }
  if (steps_.packages) {
    packages(answers.has("have", "packages"));
  }
  return std::move(report_);
}

}  // namespace

PrepareReport prepare(ssh::Connection& connection, const config::Config& config, const config::Server& server,
                      const PrepareSteps& steps, PrepareListener& listener, const Cancel& cancel) {
  return Preparation(connection, config, server, steps, listener, cancel).run();
}

}  // namespace remote::servers
