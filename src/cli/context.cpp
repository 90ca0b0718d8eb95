#include "cli/context.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/files.hpp"
#include "base/visible.hpp"
#include "cli/self_path.hpp"
#include "cli/show/events.hpp"
#include "cli/show/hint.hpp"
#include "cli/show/job_words.hpp"

namespace remote::cli {
namespace fs = std::filesystem;

Context::Context(Environment environment)
    : cancel(environment.cancel), terminal(environment.streams), environment_(std::move(environment)) {
  on_event = [this](const Event& event) { show(event); };
}

fs::path Context::folder() const {
  if (!options.project) {
    return Project::find(fs::current_path());
  }
  fs::path folder = fs::absolute(expand_home(*options.project)).lexically_normal();
  if (!fs::exists(folder / ".remote/configs.yaml")) {
    throw Error::usage("--project " + *options.project, "there is no .remote/configs.yaml in it",
                       "run `remote init` there first");
  }
  return folder;
}

Project& Context::project() {
  if (!project_) {
    Hooks hooks;
    hooks.cancel = cancel;
    hooks.rsync_helper = self_path();  // main.cpp serves rsync, too
    hooks.on_event = [this](const Event& event) { on_event(event); };
    hooks.ask_secret = [this](const std::string& prompt) { return terminal.ask_secret(prompt); };
    project_.emplace(environment_.open(folder(), std::move(hooks)));
  }
  return *project_;
}

void Context::show(const Error& error) {
  terminal.err(terminal.paint_err(ui::Style::red, "error:") + " " + error.message() + "\n");
  if (const std::string hint = hint_of(error); !hint.empty()) {
    terminal.err(terminal.paint_err(ui::Style::cyan, " hint:") + " " + hint + "\n");
  }
}

void Context::show(const std::vector<Error>& errors) {
  for (const Error& error : errors) {
    show(error);
  }
}

void Context::show(const Event& event) {
  show_event(*this, event);
}

void Context::confirm(const std::vector<Job>& jobs, const std::string& question, const std::string& undone,
                      const Error& cannot_ask) {
  constexpr std::size_t most_shown = 20;
  if (!terminal.stdin_is_terminal()) {
    throw cannot_ask;
  }
  for (std::size_t i = 0; i < std::min(jobs.size(), most_shown); ++i) {
    terminal.err(
        "  " +
        visible_line(fmt::format("{}: {}: {}", describe(jobs[i]), state_text(jobs[i]), jobs[i].command)) +
        "\n");
  }
  if (jobs.size() > most_shown) {
    terminal.err(fmt::format("  … and {} more\n", jobs.size() - most_shown));
  }
  const auto answer = terminal.ask(question + " [y/N] ");
  if (!answer || (*answer != "y" && *answer != "Y" && *answer != "yes")) {
    throw Error(undone, "not confirmed");
  }
}

}  // namespace remote::cli
