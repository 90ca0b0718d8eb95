#include "cli/help.hpp"

#include <algorithm>
#include <memory>
#include <string_view>
#include <vector>

#include <CLI/App.hpp>
#include <remote/error.hpp>

#include "base/strings.hpp"
#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "cli/markdown.hpp"
#include "cli/other_tools.hpp"
#include "cli/topics.hpp"

namespace remote::cli {
namespace {

// Printed after the examples of `completion`.
constexpr std::string_view installing_completion =
    "To have it in every shell:\n"
    "  bash  echo 'source <(remote completion bash)' >>~/.bashrc\n"
    "  zsh   remote completion zsh >~/.zfunc/_remote\n"
    "        (with fpath+=(~/.zfunc) before compinit in ~/.zshrc)\n"
    "  fish  remote completion fish >~/.config/fish/completions/remote.fish\n";

// Formats "  --name VALUE          description".
std::string row(const std::string& left, std::string_view right, std::size_t width) {
  constexpr std::size_t column = 26;
  std::string out = "  " + left;
  const std::size_t size = ui::display_width(out);
  out += size + 2 > column ? "\n" + std::string(column, ' ') : std::string(column - size, ' ');
  return out + wrapped(right, column, width) + "\n";
}

// CLI11 adds the allowed values to a type: "TEXT:{auto,never}", "N:INT in [1 - 9]".
std::string value_name(const CLI::Option& option) {
  std::string type = option.get_type_name();
  const std::size_t colon = type.find(':');
  if (colon == std::string::npos) {
    return type;
  }
  std::string values = type.substr(colon + 1);
  if (!values.starts_with('{')) {
    return type.substr(0, colon);
  }
  values = values.substr(1, values.find('}') - 1);
  std::ranges::replace(values, ',', '|');
  return values;
}

// Its arguments, then its options. Global options are only listed in `remote --help`.
std::string options(const CLI::App& command, std::size_t width) {
  std::string arguments;
  std::string rest;
  for (const CLI::Option* option : shown_options(command)) {
    const std::string what = option->get_description() + (option->get_required() ? " (required)" : "");
    if (option->get_positional()) {
      arguments += row(positional_name(*option), what, width);
    } else {
      rest += row(option_name(*option), what, width);
    }
  }
  const char* title = command.get_parent() == nullptr ? "\nOptions of every command:\n" : "\nOptions:\n";
  return (arguments.empty() ? "" : "\nArguments:\n" + arguments) + (rest.empty() ? "" : title + rest);
}

std::string commands(const CLI::App& parent, std::size_t width) {
  std::string text;
  std::string_view group;
  for (const CLI::App* sub : shown_commands(parent)) {
    const Command* command = parent.get_parent() == nullptr ? find_command(sub->get_name()) : nullptr;
    const std::string_view heading = command != nullptr ? command->group : "Commands";
    if (heading != group) {
      text += "\n" + std::string(heading) + ":\n";
      group = heading;
    }
    text += row(sub->get_name(), sub->get_description(), width);
  }
  return text;
}

std::string examples(const CLI::App& command) {
  const auto lines = examples_of(command);
  if (lines.empty()) {
    return "";
  }
  std::string text = lines.size() == 1 ? "\nExample:\n" : "\nExamples:\n";
  for (const std::string& line : lines) {
    text += "  " + line + "\n";
  }
  if (command.get_name() == "completion") {
    text += "\n" + std::string(installing_completion);
  }
  return text;
}

std::string topics(std::size_t width) {
  std::string text = "\nTopics of remote help:\n";
  for (const Topic& topic : all_topics()) {
    text += row(std::string(topic.name), topic.about, width);
  }
  return text;
}

// The manual pages about this command.
std::string see_also(const CLI::App& command, std::size_t width) {
  const bool of_root = command.get_parent()->get_parent() == nullptr;
  std::vector<std::string> pages_of_it;
  for (const Topic& topic : all_topics()) {
    const bool launches = topic.command == "launch" && command.get_name().ends_with("torch-launch");
    if (of_root && (topic.command == command.get_name() || launches)) {
      pages_of_it.push_back("remote help " + std::string(topic.name));
    }
  }
  return pages_of_it.empty() ? "" : "\n" + wrapped("See also: " + join(pages_of_it, ", "), 0, width) + "\n";
}

// The command with this name, possibly of several words. Throws Error (usage).
const CLI::App& named_by(const CLI::App& root, const std::vector<std::string>& words) {
  const CLI::App* command = &root;
  for (const std::string& word : words) {
    const auto all = shown_commands(*command);
    const auto found = std::ranges::find(all, word, [](const CLI::App* sub) { return sub->get_name(); });
    if (found == all.end()) {
      std::vector<std::string> names;
      for (const CLI::App* sub : all) {
        names.push_back(sub->get_name());
      }
      for (const Topic& topic : all_topics()) {
        names.emplace_back(topic.name);
      }
      std::string near = hint_for_other_tool({word}, {});
      near = near.empty() ? did_you_mean(word, names) : near + ";";
      throw Error::usage("remote help", "there is no command or topic '" + word + "'",
                         near + (near.empty() ? "" : " ") + "remote --help lists them all");
    }
    command = *found;
  }
  return *command;
}

}  // namespace

std::string option_name(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) {
    names.push_back("-" + name);
  }
  for (const std::string& name : option.get_lnames()) {
    names.push_back("--" + name);
  }
  const std::string value = option.get_items_expected_max() == 0 ? "" : value_name(option);
  return join(names, ", ") + (value.empty() ? "" : " " + value);
}

std::string positional_name(const CLI::Option& option) {
  const std::string name = value_name(option);
  return option.get_items_expected_max() > 1 ? name + "…" : name;
}

std::string usage_line(const CLI::App& command, const std::string& name) {
  std::string line = "Usage: " + name + " [OPTIONS]";
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional() && !option->get_group().empty()) {
      const std::string shown = positional_name(*option);
      line += option->get_required() ? " " + shown : " [" + shown + "]";
    }
  }
  if (!command.get_subcommands([](const CLI::App*) { return true; }).empty()) {
    line += " COMMAND";
  }
  return line + "\n";
}

std::vector<const CLI::Option*> shown_options(const CLI::App& command) {
  std::vector<const CLI::Option*> shown;
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_group().empty() &&
        (command.get_parent() == nullptr || option != command.get_help_ptr())) {
      shown.push_back(option);
    }
  }
  return shown;
}

std::vector<const CLI::App*> shown_commands(const CLI::App& command) {
  return command.get_subcommands([](const CLI::App* sub) { return !sub->get_group().empty(); });
}

std::vector<std::string> examples_of(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  const Command* declared =
      parent == nullptr || parent->get_parent() != nullptr ? nullptr : find_command(command.get_name());
  return declared == nullptr ? std::vector<std::string>{} : split(declared->example, '\n');
}

std::string help_text(const CLI::App& command, const std::string& name, std::size_t width) {
  std::string text = wrapped(command.get_description(), 0, width) + "\n\n" + usage_line(command, name);
  if (command.get_parent() == nullptr) {
    return text + commands(command, width) + options(command, width) + topics(width) + "\n" +
           wrapped(
               "`remote help COMMAND` shows the options of a command, `remote help TOPIC` a page of the "
               "manual.",
               0, width) +
           "\n";
  }
  return text + commands(command, width) + options(command, width) + examples(command) +
         see_also(command, width) + "\n" +
         wrapped("Options of every command (--project, --json, -v, …): see `remote --help`.", 0, width) +
         "\n";
}

std::size_t help_width(const Context& context) {
  return std::clamp<std::size_t>(context.terminal.columns(), 40, 80);
}

void add_help(CLI::App& command, Context& context) {
  const auto words = std::make_shared<std::vector<std::string>>();
  CLI::Option* option =
      command.add_option("command", *words, "A command, or a topic such as configs (default: list all)")
          ->type_name("COMMAND");
  context.completers[option] = NameKind::help;
  CLI::App& app = *command.get_parent();
  command.callback([&app, &context, words] {
    if (words->size() == 1 && is_topic(words->front())) {
      const bool color = context.terminal.paint_out(ui::Style::bold, "x") != "x";
      context.terminal.out(markdown_to_text(topic_markdown(words->front()), help_width(context), color));
      return;
    }
    const CLI::App& found = named_by(app, *words);
    std::string name = app.get_name();
    for (const std::string& word : *words) {
      name += " " + word;
    }
    // Not help(): that would print the help of the called command, which is `help`.
    context.terminal.out(found.get_formatter()->make_help(&found, name, CLI::AppFormatMode::Normal));
  });
}

}  // namespace remote::cli
