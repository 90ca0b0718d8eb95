#include "cli/manual.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string_view>

#include <CLI/App.hpp>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/files.hpp"
#include "base/strings.hpp"
#include "cli/help.hpp"
#include "cli/markdown.hpp"
#include "cli/topics.hpp"

namespace remote::cli {
namespace {

namespace fs = std::filesystem;

// "remote run" -> "remote-run", the name of its page.
std::string page_name(std::string name) {
  std::ranges::replace(name, ' ', '-');
  return name;
}

// For the NAME section: a description after a dash starts in lowercase and has no period.
std::string headline(std::string text) {
  text = text.substr(0, text.find_first_of(".;\n"));
  if (text.size() > 1 && text[0] >= 'A' && text[0] <= 'Z' && text[1] >= 'a' && text[1] <= 'z') {
    text[0] = static_cast<char>(text[0] + ('a' - 'A'));
  }
  return text;
}

std::string head(const std::string& name, int section, const std::string& date, const std::string& what) {
  std::string title = name;
  std::ranges::transform(title, title.begin(),
                         [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  return fmt::format(
      ".\\\" Made by `remote __manual`; do not edit.\n.TH {} {} {} \"remote {}\" \"remote\"\n.SH NAME\n{} "
      "\\- {}\n",
      roff_text(title), section, date, REMOTE_VERSION, roff_text(name), roff_text(what));
}

std::string options_of(const CLI::App& command) {
  std::string text;
  for (const CLI::Option* option : shown_options(command)) {
    const std::string name = option->get_positional() ? positional_name(*option) : option_name(*option);
    text += ".TP\n.B " + roff_text(name) + "\n" + roff_text(option->get_description()) +
            (option->get_required() ? " (required)" : "") + "\n";
  }
  return text;
}

// "Usage: remote run [OPTIONS]" without its first word.
std::string synopsis(const CLI::App& command, const std::string& name) {
  const std::string line = usage_line(command, name);
  return ".B " + roff_text(trim(std::string_view(line).substr(line.find(' ')))) + "\n";
}

// A sentence, ending with a period.
std::string paragraph(std::string_view text) {
  const std::string_view sentence = trim(text);
  return roff_text(sentence) + (sentence.ends_with('.') ? "" : ".") + "\n";
}

std::string commands_of(const CLI::App& command, const std::string& name, bool root) {
  std::string text;
  for (const CLI::App* sub : shown_commands(command)) {
    if (root) {
      text += ".TP\n.BR " + roff_text(page_name(name + " " + sub->get_name())) + " (1)\n" +
              paragraph(sub->get_description());
    } else {
      text += ".SS " + roff_text(name + " " + sub->get_name()) + "\n" + paragraph(sub->get_description()) +
              options_of(*sub);
    }
  }
  return text.empty() ? "" : ".SH COMMANDS\n" + text;
}

constexpr std::string_view exit_status =
    ".SH EXIT STATUS\n"
    ".TP\n.B 0\nSuccess.\n"
    ".TP\n.B 1\nThe operation failed on at least one server or job.\n"
    ".TP\n.B 2\nThe command line or the configuration is wrong.\n"
    ".TP\n.B 130\nIt was interrupted.\n"
    ".PP\n.B remote run\non one server and\n.B remote job\\-tail\nof one job return its own code.\n"
    ".PP\nA command that needs an answer of a server fails if it does not answer. Lists of known jobs\n"
    ".RB ( status ,\n.BR job\\-list ,\n.BR report )\nshow its jobs as unknown, and return 0.\n";

std::string topics() {
  std::string text = ".SH TOPICS\nThe pages of the documentation, which\n.B remote help\n.I TOPIC\nprints:\n";
  for (const Topic& topic : all_topics()) {
    text += ".TP\n.B " + roff_text(topic.name) + "\n" + roff_text(topic.about) + "\n";
  }
  return text;
}

constexpr std::string_view root_sections =
    ".SH FILES\n"
    ".TP\n.I .remote/configs.yaml\nThe servers, and how the project runs on them: see\n.BR "
    "remote\\-configs.yaml (5).\n"
    ".TP\n.I .remote/jobs\nWhat this machine knows of the jobs. The jobs themselves belong to the servers.\n"
    ".TP\n.I .remote/logs\nThe output of each command that ran over SSH.\n"
    ".SH ENVIRONMENT\n"
    ".TP\n.B NO_COLOR\nIf it is set and not empty, nothing is coloured.\n";

std::string examples_section(const CLI::App& command) {
  const auto lines = examples_of(command);
  return lines.empty() ? "" : ".SH EXAMPLES\n.nf\n" + roff_text(join(lines, "\n")) + "\n.fi\n";
}

std::string today() {
  std::time_t now = std::time(nullptr);
  if (const char* epoch = std::getenv("SOURCE_DATE_EPOCH")) {
    const std::string_view text(epoch);
    std::from_chars(text.data(), text.data() + text.size(), now);
  }
  return fmt::format("{:%Y-%m-%d}", fmt::gmtime(now));
}

void write_manual(const CLI::App& app, const fs::path& folder) {
  const std::string date = today();
  make_folders(folder / "man1");
  make_folders(folder / "man5");
  write_file_atomic(folder / "man1" / "remote.1", manual_page(app, "remote", date));
  for (const CLI::App* command : shown_commands(app)) {
    const std::string name = "remote " + command->get_name();
    write_file_atomic(folder / "man1" / (page_name(name) + ".1"), manual_page(*command, name, date));
  }
  write_file_atomic(folder / "man5" / "remote-configs.yaml.5", configs_page(date));
}

}  // namespace

std::string manual_page(const CLI::App& command, const std::string& name, const std::string& date) {
  const bool root = command.get_parent() == nullptr;
  std::string page = head(page_name(name), 1, date, headline(command.get_description())) + ".SH SYNOPSIS\n" +
                     synopsis(command, name) + ".SH DESCRIPTION\n" + paragraph(command.get_description());
  if (!root) {
    page +=
        ".PP\nThe options of every command, such as\n.B \\-\\-project\nand\n.BR \\-\\-json ,\nare described "
        "in\n.BR remote (1).\n";
  }
  const std::string options = options_of(command);
  page += commands_of(command, name, root) + (options.empty() ? "" : ".SH OPTIONS\n" + options) +
          examples_section(command);
  page += exit_status;
  if (root) {
    return page + topics() + std::string(root_sections) +
           ".SH SEE ALSO\n.BR remote\\-configs.yaml (5),\n.BR ssh (1),\n.BR rsync (1)\n";
  }
  return page + ".SH SEE ALSO\n.BR remote (1),\n.BR remote\\-configs.yaml (5)\n";
}

std::string configs_page(const std::string& date) {
  const std::string text = markdown_to_roff(topic_markdown("configs"));
  return head("remote-configs.yaml", 5, date, "the servers of a project, and how it runs on them") +
         ".SH SYNOPSIS\n.I .remote/configs.yaml\n.SH DESCRIPTION\n" + text + ".SH SEE ALSO\n.BR remote (1)\n";
}

void add_manual(CLI::App& app) {
  auto folder = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("__manual", "")->group("");
  command->add_option("folder", *folder, "Where the pages are written")->required();
  command->callback([&app, folder] { write_manual(app, *folder); });
}

}  // namespace remote::cli
