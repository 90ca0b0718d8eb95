#include <set>

#include <fmt/format.h>

#include "base/visible.hpp"
#include "cli/commands.hpp"
#include "cli/completion.hpp"
#include "jobs/store.hpp"
#include "ui/text_width.hpp"

// The hidden command that the completion scripts ask.
//   remote __complete line WORD…     what the last word may become
//   remote __complete servers|jobs   the names, one a line

namespace remote::cli {
namespace {

// The jobs by key, or their tags. A record that cannot be read is passed by.
std::vector<Completion::Word> job_names(const config::Config& config, NameKind kind) {
  std::vector<Completion::Word> names;
  std::set<std::string> tags;
  for (const jobs::Job& job : jobs::Store(config.local(config.jobs_folder)).list().jobs) {
    if (kind == NameKind::jobs) {
      names.push_back({std::to_string(job.key), fmt::format("{} on {}: {}", jobs::to_string(job.state),
                                                            job.server, ui::shorten(job.command, 60))});
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
std::vector<Completion::Word> names_of(const Context& context, NameKind kind) {
  try {
    const config::Config config = config::load(context.project());
    if (kind != NameKind::servers) {
      return job_names(config, kind);
    }
    std::vector<Completion::Word> names;
    for (const config::Server& server : config.servers) {
      names.push_back({server.name, server.hostname});
    }
    return names;
  } catch (const Error&) {
    return {};
  }
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
  context.terminal.out(print(complete(root, words, names)));
}

}  // namespace

void add_complete(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("__complete", "")->group("");
  command->prefix_command();    // the words of the line are taken as they are,
  command->fallthrough(false);  // also those that look like global options
  command->set_help_flag();     // or like --help
  command->callback([command, &app, &context] { answer(context, app, command->remaining()); });
}

}  // namespace remote::cli
