#include "cli/usage_error.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/command.hpp"
#include "base/shell_quote.hpp"
#include "base/strings.hpp"
#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "cli/guide_words.hpp"
#include "cli/help.hpp"
#include "cli/line_meaning.hpp"
#include "cli/other_tools.hpp"
#include "cli/word_list.hpp"
#include "cli/words.hpp"

namespace remote::cli {
namespace {

// The innermost subcommand on the command line.
const CLI::App& named_command(const CLI::App& app) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
  }
  return *command;
}

std::string full_name(const CLI::App& command) {
  return command.get_parent() != nullptr ? full_name(*command.get_parent()) + " " + command.get_name()
                                         : command.get_name();
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* app = &command; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* option : app->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        names.push_back("--" + name);
      }
    }
  }
  return names;
}

std::vector<std::string> command_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* sub : shown_commands(command)) {
    names.push_back(sub->get_name());
  }
  return names;
}

// The first word that was not recognized.
std::optional<std::string> unknown_word(const CLI::App& app, bool option) {
  for (const std::string& word : app.remaining(true)) {
    if (word.starts_with("-") == option) {
      return word;
    }
  }
  return std::nullopt;
}

// Empty if configs.yaml cannot be read, because errors in the command line take precedence.
std::vector<std::string> known_servers(Context& context) {
  try {
    return context.project().server_names();
  } catch (const Error&) {
    return {};
  }
}

// The index of the word that is used instead of a command's name; nullopt if it is a command.
std::optional<std::size_t> find_unknown_command(const CLI::App& app, const std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const CLI::Option* option = words[i].starts_with('-') ? app.get_option_no_throw(words[i]) : nullptr;
    if (option != nullptr) {
      i += static_cast<std::size_t>(std::max(0, option->get_items_expected_min()));
    } else if (words[i].starts_with('-')) {
      return std::nullopt;  // an option before its command
    } else {
      return find_command(words[i]) == nullptr ? std::optional(i) : std::nullopt;
    }
  }
  return std::nullopt;
}

// If the option belongs to the command but is before its name: the command line with the name first.
// Otherwise "".
std::string line_with_options_behind(const CLI::App& command, const std::vector<std::string>& words,
                                     const std::string& unknown) {
  const auto name = std::ranges::find(words, command.get_name());
  const bool stands_before = std::find(words.begin(), name, unknown) != name && name != words.end();
  if (!stands_before || find_option(&command, unknown.substr(0, unknown.find('='))) == nullptr) {
    return "";
  }
  std::vector<std::string> all{*name};
  all.insert(all.end(), words.begin(), name);
  all.insert(all.end(), name + 1, words.end());
  return write_line(all);
}

// For "-m MODULE" as an option: the command line with the module as the program, behind all own options.
// Otherwise "".
std::string line_with_module(Context& context, const CLI::App& command, const std::vector<std::string>& words,
                             const std::string& option) {
  const auto from = std::ranges::find(words, command.get_name());
  const auto at = std::find(from, words.end(), option);
  if ((option != "-m" && option != "--module") || at == words.end() || at + 1 == words.end() ||
      std::ranges::find(words, "--") != words.end()) {
    return "";
  }
  WordList line{from, at};
  WordList program{"--", "-m", *(at + 1)};
  for (auto word = at + 2; word != words.end(); ++word) {
    std::string name = word->substr(0, word->find('='));
    std::ranges::replace(name, '_', '-');
    const CLI::Option* own = name.starts_with("--") ? command.get_option_no_throw(name) : nullptr;
    (own == nullptr ? program : line).push_back(*word);
    const std::size_t values =
        own == nullptr || word->find('=') != std::string::npos ? 0 : count_values(*own);
    for (std::size_t left = values; left > 0 && word + 1 != words.end(); --left) {
      line.push_back(*++word);
    }
  }
  line.insert(line.end(), program.begin(), program.end());
  return is_meant(line, known_servers(context)) ? write_line(joined({words.begin(), from}, line)) : "";
}

// Whether the word before this one is the value of an option: "--note my run".
bool follows_value(const CLI::App& command, const std::vector<std::string>& words, std::size_t at) {
  const CLI::Option* option = at < 2 ? nullptr : find_option(&command, words[at - 2]);
  return option != nullptr && words[at - 2].starts_with('-') && option->get_items_expected_min() > 0;
}

// The probable meaning of a word that the command does not accept; "" if unknown.
std::string hint_for_extra_word(Context& context, const CLI::App& command,
                                const std::vector<std::string>& words, const std::string& extra) {
  const std::string& name = command.get_name();
  const std::vector<std::string> servers = known_servers(context);
  const auto from = std::ranges::find(words, name);
  const auto at = std::find(from, words.end(), extra);
  if (at == words.end()) {
    return "";
  }
  const WordList before{words.begin(), from};
  const WordList rest{from + 1, words.end()};
  const auto offer = [&](const WordList& line) {
    return is_meant(line, servers) ? "use " + write_line(joined(before, line)) : "";
  };
  if (name == "shell") {
    const std::string hint = hint_for_other_tool(joined({"ssh"}, rest), servers, before);
    return hint.find(" run --server ") != std::string::npos
               ? hint
               : "to run one command, write: remote run --server S -- COMMAND";
  }
  const std::string server = server_in(extra, servers);
  const CLI::Option* option = command.get_option_no_throw("--server");
  const auto kind = context.completers.find(option);
  std::string hint;
  if (name == "pull" || name == "history") {
    hint = offer(joined({name == "pull" ? "job-pull" : "show"}, rest));
  } else if (name == "status") {
    hint = offer(server.empty() ? joined({"job-list"}, rest) : WordList{"servers", "--server", server});
  } else if (!server.empty() && option != nullptr && kind != context.completers.end() &&
             kind->second == NameKind::servers) {
    hint = offer(joined(joined({from, at}, {"--server", server}), {at + 1, words.end()}));
  }
  const auto index = static_cast<std::size_t>(at - words.begin());
  return hint.empty() && follows_value(command, words, index) ? "a value with blanks needs quotes" : hint;
}

// "all", "A100:8"
std::string hint_for_gpus(const std::string& value) {
  const std::string count = value.substr(value.find(':') + 1);
  const bool has_count = !count.empty() && count.find_first_not_of("0123456789") == std::string::npos;
  return has_count ? fmt::format("write --gpus {}; `remote servers` shows the kinds of GPUs", count)
                   : "leave it out: without it, nothing is leased and all GPUs are used; --gpus N leases N";
}

std::string hint_for_value(const CLI::App& command, const CLI::ParseError& error,
                           const std::vector<std::string>& words) {
  const auto gpus =
      std::ranges::find_if(words, [](const std::string& word) { return word.starts_with("--gpus"); });
  if (std::string_view(error.what()).starts_with("--gpus: ") && gpus != words.end()) {
    const std::size_t equals = gpus->find('=');
    const bool is_attached = equals != std::string::npos;
    return hint_for_gpus(is_attached               ? gpus->substr(equals + 1)
                         : gpus + 1 == words.end() ? ""
                                                   : *(gpus + 1)) +
           "; ";
  }
  const auto address = std::find_if(words.rbegin(), words.rend(), [](const std::string& word) {
    return word.find_first_of(" @") != std::string::npos;
  });
  if (command.get_name() == "add" && error.get_name() == "RequiredError" && address != words.rend()) {
    return fmt::format("the server's name comes first: remote add NAME {}; ",
                       visible_line(shell_quote(*address), 100));
  }
  return "";
}

const CLI::App* find_named(const CLI::App& app, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (find_command(word) != nullptr) {
      const auto found = app.get_subcommands([&](const CLI::App* sub) { return sub->check_name(word); });
      return found.empty() ? nullptr : found.front();
    }
  }
  return nullptr;
}

}  // namespace

std::string name_of_command(const CLI::App& app) {
  return full_name(named_command(app));
}

Error usage_error(Context& context, const CLI::App& app, const CLI::ParseError& error,
                  const std::vector<std::string>& words) {
  const auto foreign = find_unknown_command(app, words);
  const CLI::App& command = foreign ? app : named_command(app);  // "scontrol show job 1" is not our `show`
  const std::string name = full_name(command);
  const std::string help = fmt::format("see `{} --help`", name);
  const auto refused = [&](const std::string& what, const std::string& near) {
    return Error::usage(name + " has no " + what, "", near.empty() ? help : near + " " + help);
  };
  const auto subcommands = command_names(command);
  if (const auto unknown = foreign ? std::optional(words[*foreign]) : unknown_word(app, false);
      unknown && !subcommands.empty()) {
    const auto at = words.begin() + static_cast<std::ptrdiff_t>(foreign.value_or(0));
    const std::string hint =
        foreign ? hint_for_other_tool({at, words.end()}, known_servers(context), {words.begin(), at}) : "";
    return refused("command '" + *unknown + "'",
                   hint.empty() ? did_you_mean(*unknown, subcommands) : hint + ";");
  }
  if (const auto unknown = unknown_word(app, true)) {
    // "-np 2" is parsed as single letters, so this finds the typed word.
    const auto typed = std::ranges::find_if(words, [&](const std::string& word) {
      return word == *unknown ||
             (word.starts_with('-') && !word.starts_with("--") && word.ends_with(unknown->substr(1)));
    });
    const std::string option = typed == words.end() ? *unknown : *typed;
    const auto cmd = std::ranges::find_if(
        words, [](const std::string& word) { return word == "--cmd" || word.starts_with("--cmd="); });
    const auto value = cmd != words.end() && *cmd == "--cmd" ? cmd + 1 : cmd;
    const bool has_quotes = value != words.end() && value->find(' ') != std::string::npos;
    const std::string quotes = typed > cmd ? quotes_hint(command, words) : "";
    if (!quotes.empty() && !has_quotes) {
      return refused("option " + option, quotes + ";");
    }
    if (const std::string right = line_with_options_behind(command, words, *unknown); !right.empty()) {
      return Error::usage(fmt::format("{} comes before the command", option), "", "write " + right);
    }
    if (const std::string right = line_with_module(context, command, words, option); !right.empty()) {
      return refused("option " + option, "write " + right + ";");
    }
    if (const std::string hint = hint_for_guides_option(command.get_name(), option); !hint.empty()) {
      return refused("option " + option, hint + ";");
    }
    const std::string near = did_you_mean(unknown->substr(0, unknown->find('=')), option_names(command));
    return refused("option " + *unknown, near.empty() && !quotes.empty() ? quotes + ";" : near);
  }
  if (const auto unknown = unknown_word(app, false)) {
    const std::string hint = hint_for_extra_word(context, command, words, *unknown);
    return Error::usage(fmt::format("{} takes no '{}'", name, *unknown), "",
                        hint.empty() ? help : hint + "; " + help);
  }
  if (!subcommands.empty() && error.get_name() == "RequiredError") {
    return Error::usage(fmt::format("{} needs a command", name), join(subcommands, ", "), help);
  }
  return Error::usage(fmt::format("{}: {}", name, error.what()), "",
                      hint_for_value(command, error, words) + help);
}

void check_quotes(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* command = find_named(app, words);
  const std::string own = command == nullptr ? "" : find_own_option(*command, words);
  if (own.empty()) {
    return;
  }
  if (const std::string hint = quotes_hint(*command, words); !hint.empty()) {
    throw Error::usage(
        fmt::format("remote {}: --cmd takes one word", command->get_name()), "",
        fmt::format("{}; an option of `remote` itself, such as {}, goes before --cmd", hint, own));
  }
}

namespace {

// How many bytes of the word's start are signs of this list, which are three bytes each.
std::size_t count_sign_bytes(std::string_view word, std::span<const std::string_view> signs) {
  std::size_t size = 0;
  while (std::ranges::find(signs, word.substr(size, 3)) != signs.end()) {
    size += 3;
  }
  return size;
}

}  // namespace

void check_typed_signs(const std::vector<std::string>& words, const std::optional<CommandWords>& command) {
  constexpr std::array<std::string_view, 3> dashes{"\u2013", "\u2014", "\u2212"};
  constexpr std::array<std::string_view, 5> quotes{"\u201c", "\u201d", "\u201e", "\u2018", "\u2019"};
  std::size_t end = words.size();
  if (command && !command->words.empty()) {
    end -= command->marked ? command->words.size() + 1 : command->words.size() - 1;
  }
  for (std::size_t i = 0; i < end; ++i) {
    const std::string& word = words[i];
    const std::string shown = visible_line(word, 40);
    if (word.find_first_of(" \t\n") != std::string::npos) {
      continue;
    }
    if (const std::size_t size = count_sign_bytes(word, dashes); size > 0 && size < word.size()) {
      const std::string name = word.substr(std::min(word.find_first_not_of('-', size), size + 1));
      throw Error::usage(fmt::format("'{}' begins with a long dash", shown),
                         "text editors and web pages put it in the place of '--'",
                         fmt::format("type {}{}", name.size() == 1 ? "-" : "--", visible_line(name, 40)));
    }
    if (count_sign_bytes(word, quotes) > 0) {
      throw Error::usage(fmt::format("'{}' begins with a typographic quote", shown),
                         "the shell does not know it, and has split the text at its blanks",
                         "type the quotes again, as ' or \"");
    }
  }
}

Error with_script_line(const Context& context, const Error& error) {
  if (error.remedy() != Remedy::name_script) {
    return error;
  }
  const std::string& right = error.remedy_detail();
  const auto is_it = [&](const std::string& word) {
    const bool is_line = word.find(' ') != word.npos && right.find(' ') == right.npos;  // of `bash -c`
    return !is_line && std::filesystem::path(word).filename() == std::filesystem::path(right).filename();
  };
  const auto& words = context.command_words;
  const bool has_words = words && (words->marked || words->words.size() > 1);
  WordList line = context.typed_words;
  const std::size_t begin = words ? line.size() - std::min(line.size(), words->words.size()) : 0;
  for (auto word = line.begin() + static_cast<std::ptrdiff_t>(begin); word != line.end(); ++word) {
    constexpr std::string_view option = "--cmd=";
    const std::size_t from = word->starts_with(option) ? option.size() : 0;
    const std::string value = word->substr(from);
    const bool is_line = !has_words && value.find(' ') != std::string::npos;
    const WordList parts = is_line ? shell_words(value) : WordList{value};
    const auto part = std::ranges::find_if(parts, is_it);
    const std::size_t at = part == parts.end() ? std::string::npos : word->find(*part, from);
    if (at != std::string::npos) {
      word->replace(at, part->size(), is_line ? shell_quote(right) : right);
      return Error::usage(error.what_failed(), error.reason(), error.hint() + "; write " + write_line(line))
          .mended_by(error.remedy(), right);
    }
  }
  return error;
}

}  // namespace remote::cli
