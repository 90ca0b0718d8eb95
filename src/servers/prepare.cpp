#include "servers/prepare.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/login_shell.hpp"
#include "base/shell_quote.hpp"
#include "base/strings.hpp"
#include "scripts/scripts.hpp"
#include "servers/logs.hpp"
#include "servers/packages.hpp"
#include "servers/python_env.hpp"

namespace remote::servers {
namespace {

constexpr std::string_view answer_mark = "@remote1 ";
constexpr std::size_t shown_lines = 15;
constexpr std::size_t max_line = 4096;
constexpr std::size_t max_error_text = 65536;

// The answers of a provision script, from its stdout as it comes. Other lines are what pip and conda print.
class Answers {
 public:
  explicit Answers(PrepareListener& listener) : listener_(listener) {}

  void add(std::string_view data) {
    for (const char c : data) {
      if (c == '\n' || c == '\r') {
        take_line();
        line_.clear();
      } else if (line_.size() < max_line) {
        line_ += c;
      }
    }
  }
  bool have(const std::string& what) const {
    return std::find(have_.begin(), have_.end(), what) != have_.end();
  }

  bool begun = false;  // an answer has come
  std::string failure;
  std::string hint;
  std::vector<std::string> notes;

 private:
  void take_line() {
    std::string_view text = trim(line_);
    if (!text.starts_with(answer_mark)) {
      if (!text.empty()) {
        listener_.detail(std::string(text), std::nullopt);
      }
      return;
    }
    begun = true;
    text.remove_prefix(answer_mark.size());
    const std::size_t space = text.find(' ');
    const std::string_view word = text.substr(0, space);
    const std::string value(space == std::string_view::npos ? "" : text.substr(space + 1));
    if (word == "step") {
      listener_.detail(value, std::nullopt);
    } else if (word == "fail") {
      failure = value;
    } else if (word == "hint") {
      hint = value;
    } else if (word == "note") {
      notes.push_back(value);
    } else if (word == "have") {
      have_.push_back(value);
    }
  }

  PrepareListener& listener_;
  std::string line_;
  std::vector<std::string> have_;
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
  Answers run_script(const char* name, const std::string& script, const std::string& variables);
  void setup(bool done);
  void sync();
  void packages(bool done);
  std::string system_packages() const;

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

// `name` names the log folder and the step in errors.
Answers Preparation::run_script(const char* name, const std::string& script, const std::string& variables) {
  Answers answers(listener_);
  CommandLog log(config_, name, server_.name);
  std::string errors;
  ssh::ExecRequest request;
  request.input = ssh::wrap_script(provision_variables(config_, server_) + variables +
                                   std::string(scripts::text("provision_common.sh")) +
                                   std::string(scripts::text(script)));
  const bool is_question = script == "provision_status.sh";  // asks, changes nothing: leaves no log
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
  std::optional<ssh::ExecResult> result;
  try {
    result = connection_.exec(request, cancel_);
  } catch (const Error& error) {
    if (!is_question) {
      log.give_up(error.message());
    }
    throw;
  }
  if (result->status.success() && answers.failure.empty()) {
    if (!is_question) {
      log.finish(result->status);
    }
    return answers;
  }
  log.finish(result->status);
  if (is_question && !answers.begun) {
    throw login_shell_ended(result->status.describe());
  }
  listener_.failed_output(last_lines(trim(errors), shown_lines), log.folder().string());
  const std::string reason = answers.failure.empty()
                                 ? fmt::format("the script ended with {}: {}", result->status.describe(),
                                               last_lines(trim(errors), 3))
                                 : answers.failure;
  throw Error(std::string(name) + " failed", reason, answers.hint);
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
  report_.notes.insert(report_.notes.end(), answers.notes.begin(), answers.notes.end());
  report_.setup = StepResult::done;
}

void Preparation::sync() {
  listener_.step("rsync");
  CommandLog log(config_, "rsync", server_.name);
  SyncOptions options = steps_.sync_options;
  options.parents_exist = true;  // the question made the project's folder
  options.on_progress = [this](const ssh::RsyncProgress& progress) {
    listener_.detail(
        fmt::format("{} MB, {}, {} left", progress.bytes / 1000000, progress.rate, progress.left),
        progress.percent / 100.0);
  };
  options.log = [&log](ssh::Stream stream, std::string_view data) { log.write(stream, data); };
  try {
    report_.files = sync_to(connection_, config_, server_, options, cancel_);
    report_.sync = StepResult::done;
    if (steps_.verify) {
      listener_.detail("comparing contents", std::nullopt);
      report_.differences = differences(connection_, config_, server_, options, cancel_);
    }
    log.finish(ExitStatus::exited(0));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::interrupted) {
      log.give_up(error.message());
      listener_.failed_output("", log.folder().string());
    }
    throw;
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
  report_.notes.insert(report_.notes.end(), answers.notes.begin(), answers.notes.end());
  report_.packages = StepResult::done;
}

PrepareReport Preparation::run() {
  const Answers answers =
      run_script("status", "provision_status.sh",
                 "PACKAGES_DIGEST=" + packages_digest(config_) + "\n" + system_packages());
  if (!answers.have("status")) {
    throw login_shell_ended();
  }
  if (steps_.setup) {
    setup(answers.have("setup"));
  }
  if (steps_.sync) {
    sync();
  }
  if (steps_.packages) {
    packages(answers.have("packages"));
  }
  return std::move(report_);
}

}  // namespace

std::string to_string(StepResult result) {
  switch (result) {
    case StepResult::not_asked:
      return "";
    case StepResult::skipped:
      return "already";
    case StepResult::done:
      return "done";
  }
  return "";
}

PrepareReport prepare(ssh::Connection& connection, const config::Config& config, const config::Server& server,
                      const PrepareSteps& steps, PrepareListener& listener, const Cancel& cancel) {
  return Preparation(connection, config, server, steps, listener, cancel).run();
}

}  // namespace remote::servers
