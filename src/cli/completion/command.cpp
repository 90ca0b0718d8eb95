#include <set>

#include <CLI/App.hpp>
#include <CLI/Validators.hpp>
#include <fmt/format.h>

#include "base/visible.hpp"
#include "cli/commands/commands.hpp"
#include "cli/completion/completion.hpp"
#include "ui/text_width.hpp"

// `remote completion SHELL`: the script that asks, at each TAB, the hidden command
//   remote __complete line WORD…     what the last word may become
//   remote __complete servers|jobs   the names, one a line

namespace remote::cli {
namespace {

std::vector<Completion::Word> job_names(Project& project, NameKind kind) {
  std::vector<Completion::Word> names;
  std::set<std::string> tags;
  for (const Job& job : project.jobs({.ask = false})) {
    if (kind == NameKind::jobs) {
      names.push_back({std::to_string(job.key), fmt::format("{} on {}: {}", to_string(job.state), job.server,
                                                            ui::shorten(job.command, 60))});
    }
    tags.insert(job.tags.begin(), job.tags.end());
  }
  if (kind == NameKind::tags) {
    for (const std::string& tag : tags) {
      names.push_back({tag, ""});
    }
  }
  return names;
}

// The project's names; none where there is no project or its files cannot be read: a shell at a prompt is
// no place for errors. Reads files only, never asks a server.
std::vector<Completion::Word> names_of(Context& context, NameKind kind) {
  std::vector<Completion::Word> names;
  if (kind == NameKind::signals) {
    for (const char* name : {"TERM", "INT", "HUP", "KILL", "QUIT", "USR1", "USR2"}) {
      names.push_back({name, ""});
    }
    return names;
  }
  context.on_event = [](const Event&) {};
  try {
    Project& project = context.project();
    if (kind != NameKind::servers) {
      return job_names(project, kind);
    }
    for (const ServerInfo& server : project.servers()) {
      names.push_back({server.name, server.hostname});
    }
  } catch (const Error&) {
    // then there are none
  }
  return names;
}

std::string print(const Completion& completion) {
  switch (completion.kind) {
    case Completion::Kind::files:
      return ":files\n";
    case Completion::Kind::folders:
      return ":folders\n";
    case Completion::Kind::words:
      break;
  }
  std::string out = ":words\n";
  for (const Completion::Word& word : completion.words) {
    if (visible_line(word.text) == word.text) {  // a name that would write on the terminal is not offered
      out += word.text + "\t" + visible_line(word.description) + "\n";
    }
  }
  return out;
}

void answer(Context& context, const CLI::App& root, std::vector<std::string> words) {
  const std::string what = words.empty() ? "" : words.front();
  const auto names = [&context](NameKind kind) { return names_of(context, kind); };
  if (what == "servers" || what == "jobs") {
    for (const Completion::Word& name : names(what == "servers" ? NameKind::servers : NameKind::jobs)) {
      context.terminal.out(name.text + "\n");
    }
    return;
  }
  if (what != "line") {
    throw Error::usage("__complete", "takes servers, jobs, or line and words");
  }
  words.erase(words.begin());
  if (std::string project = project_on_line(words); !project.empty()) {
    context.options.project = std::move(project);
  }
  context.terminal.out(print(complete(root, words, context.completers, names)));
}

}  // namespace

void add_completion(CLI::App& app, Context& context) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("completion", "Print the completion script of a shell");
  command->add_option("shell", *shell, "The shell")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->callback([shell, &context] { context.terminal.out(completion_script(*shell)); });
}

void add_complete(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("__complete", "")->group("");
  command->prefix_command();    // the words of the line are taken as they are,
  command->fallthrough(false);  // also those that look like global options
  command->set_help_flag();     // or like --help
  command->callback([command, &app, &context] { answer(context, app, command->remaining()); });
}

}  // namespace remote::cli
