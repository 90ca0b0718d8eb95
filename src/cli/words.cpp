#include "cli/words.hpp"

#include <algorithm>

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <remote/exit_status.hpp>

#include "base/command.hpp"
#include "base/shell_quote.hpp"
#include "base/simple_commands.hpp"
#include "base/strings.hpp"

namespace remote::cli {

namespace {

// Other programs' names of options, used if the command has the second one.
constexpr std::pair<std::string_view, std::string_view> other_names[] = {{"--nproc", "--nproc-per-node"},
                                                                         {"--chdir", "--workdir"},
                                                                         {"--cwd", "--workdir"},
                                                                         {"--tail", "--lines"},
                                                                         {"--wdir", "--workdir"}};

}  // namespace

const CLI::Option* find_option(const CLI::App* command, const std::string& name) {
  for (; command != nullptr; command = command->get_parent()) {
    if (const CLI::Option* option = command->get_option_no_throw(name)) {
      return option;
    }
  }
  return nullptr;
}

std::size_t count_values(const CLI::Option& option) {
  return static_cast<std::size_t>(std::max(0, option.get_items_expected_min()));
}

namespace {

// Number of following words that belong to a word such as "-e" or "-vn".
std::size_t values_of_letters(const CLI::App* command, const std::string& word) {
  for (std::size_t i = 1; i < word.size(); ++i) {
    const CLI::Option* option = find_option(command, std::string("-") + word[i]);
    if (option == nullptr) {
      return 0;  // CLI11 reports this
    }
    if (const std::size_t values = count_values(*option); values > 0) {
      return i + 1 == word.size() ? values : values - 1;  // "-eNAME=VALUE"
    }
  }
  return 0;
}

class WordsReader {
 public:
  WordsReader(const CLI::App& app, const std::set<const CLI::App*>& with_command,
              const std::vector<std::string>& words, const std::function<bool(const std::string&)>& is_name)
      : command_(&app), with_command_(with_command), words_(words), is_name_(is_name) {}

  CommandLine read() {
    while (at_ < words_.size()) {
      const std::string& word = words_[at_];
      if (word == "--" || word.size() < 2 || word[0] != '-') {
        if (!take_plain(word)) {
          break;
        }
      } else if (word.starts_with("--")) {
        take_option(word);
      } else if (command_->get_option_no_throw("--signal") != nullptr && signal_number(word.substr(1))) {
        line_.words.push_back("--signal=" + word.substr(1));  // -9, -KILL
        ++at_;
      } else {
        const std::size_t values = values_of_letters(command_, word);
        copy(1 + values);
      }
    }
    return std::move(line_);
  }

 private:
  void copy(std::size_t count) {
    for (; count > 0 && at_ < words_.size(); --count) {
      line_.words.push_back(words_[at_++]);
    }
  }

  // Returns false when there is nothing more to read.
  bool take_plain(const std::string& word) {
    if (with_command_.contains(command_)) {
      const bool marked = word == "--";
      if (!marked && !named_ && takes_name() && is_name_(word)) {
        named_ = true;
        copy(1);
        return true;
      }
      const auto begin = words_.begin() + static_cast<std::ptrdiff_t>(at_ + (marked ? 1 : 0));
      line_.command = CommandWords{{begin, words_.end()}, marked};
      return false;
    }
    if (word == "--") {
      copy(words_.size());  // CLI11 handles these
      return false;
    }
    if (const CLI::App* sub = find_subcommand(word)) {
      command_ = sub;
    } else if (command_->get_prefix_command()) {
      copy(words_.size());
      return false;
    }
    copy(1);
    return true;
  }

  bool takes_name() const {
    return is_name_ && std::ranges::any_of(command_->get_options(), [](const CLI::Option* option) {
             return option->get_positional();
           });
  }

  const CLI::App* find_subcommand(const std::string& word) const {
    for (const CLI::App* sub : command_->get_subcommands([](const CLI::App*) { return true; })) {
      if (sub->check_name(word)) {
        return sub;
      }
    }
    return nullptr;
  }

  void take_option(const std::string& word) {
    const std::size_t equals = word.find('=');
    std::string name = word.substr(0, equals);
    const CLI::Option* option = find_option(command_, name);
    if (option == nullptr) {
      std::string dashed = name;
      std::replace(dashed.begin(), dashed.end(), '_', '-');
      const auto* const other =
          std::ranges::find(other_names, dashed, &std::pair<std::string_view, std::string_view>::first);
      dashed = other != std::end(other_names) ? other->second : dashed;
      option = find_option(command_, dashed);
      name = option != nullptr ? dashed : name;
    }
    const std::size_t values = option != nullptr ? count_values(*option) : 0;
    if (name == "--env" && values == 2 && take_variable(word, equals)) {
      return;
    }
    line_.words.push_back(equals == std::string::npos ? name : name + word.substr(equals));
    ++at_;
    copy(equals == std::string::npos ? values : values - std::min<std::size_t>(values, 1));
  }

  // Returns whether the words are a variable; if so, reads them.
  bool take_variable(const std::string& word, std::size_t equals) {
    const bool attached = equals != std::string::npos;
    if (!attached && at_ + 1 == words_.size()) {
      return false;
    }
    std::string variable = attached ? word.substr(equals + 1) : words_[at_ + 1];
    std::size_t taken = attached ? 1 : 2;
    if (variable.find('=') == std::string::npos) {
      if (at_ + taken == words_.size() || words_[at_ + taken] == "--") {
        return false;
      }
      variable += "=" + words_[at_ + taken];
      ++taken;
    }
    line_.words.insert(line_.words.end(), {"-e", variable});
    at_ += taken;
    return true;
  }

  const CLI::App* command_;
  const std::set<const CLI::App*>& with_command_;
  const std::vector<std::string>& words_;
  const std::function<bool(const std::string&)>& is_name_;
  bool named_ = false;
  std::size_t at_ = 0;
  CommandLine line_;
};

}  // namespace

CommandLine read_command_line(const CLI::App& app, const std::set<const CLI::App*>& with_command,
                              const std::vector<std::string>& words,
                              const std::function<bool(const std::string&)>& is_name) {
  return WordsReader(app, with_command, words, is_name).read();
}

namespace {

// A command line split around --cmd and its value.
struct CmdOption {
  std::vector<std::string> before;
  std::string value;
  std::vector<std::string> behind;  // including those that would become a command without "--"
  std::size_t options = 0;          // number of these that are read as options

  bool has_blanks() const { return value.find_first_of(" \t\n") != std::string::npos; }
};

std::optional<CmdOption> find_cmd(const CLI::App& command, const std::vector<std::string>& words) {
  const auto name = std::ranges::find(words, command.get_name());
  if (name == words.end() || command.get_option_no_throw("--cmd") == nullptr) {
    return std::nullopt;
  }
  const CommandLine line = read_command_line(command, {&command}, {name + 1, words.end()});
  const std::size_t count = line.command ? line.command->words.size() + (line.command->marked ? 1 : 0) : 0;
  const auto options_end = words.end() - static_cast<std::ptrdiff_t>(count);
  const auto option = std::find_if(name, options_end, [](const std::string& word) {
    return word == "--cmd" || word.starts_with("--cmd=");
  });
  if (option == options_end || (*option == "--cmd" && option + 1 == words.end())) {
    return std::nullopt;
  }
  const bool is_attached = *option != "--cmd";
  const auto value = is_attached ? option : option + 1;
  CmdOption found{.before = {words.begin(), option},
                  .value = is_attached ? option->substr(option->find('=') + 1) : *value,
                  .behind = {value + 1, words.end()},
                  .options = static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, options_end - value - 1))};
  if (found.value == "--" && !found.behind.empty()) {
    found.value = found.behind.front();
    found.behind.erase(found.behind.begin());
    found.options -= std::min<std::size_t>(found.options, 1);
  }
  if (!found.behind.empty() && found.behind.front() == "--") {
    found.behind.erase(found.behind.begin());
  }
  return found;
}

// "lr=1,2" or "seed=0..4", a parameter of a sweep without its --param
bool is_parameter(const std::string& word) {
  return is_assignment(word) && (word.find(',') != std::string::npos || word.find("..") != std::string::npos);
}

}  // namespace

std::string write_line(std::vector<std::string> words) {
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] == "--cmd") {
      words[i + 1] = mask_command(words[i + 1]);
    } else if (has_name(" -e --env ", words[i]) && i + 2 < words.size() &&
               is_assignment(words[i + 1] + "=")) {
      words[i + 2] = mask_value(words[i + 1], words[i + 2]);
    }
  }
  words.insert(words.begin(), "remote");
  return "`" + visible_line(mask_command(shell_join(words)), 300) + "`";
}

std::string quotes_hint(const CLI::App& command, const std::vector<std::string>& words) {
  const auto cmd = find_cmd(command, words);
  if (!cmd || cmd->behind.empty()) {
    return "";
  }
  std::vector<std::string> all = cmd->before;
  std::vector<std::string> line;
  for (std::size_t i = 0; i < cmd->behind.size(); ++i) {
    const std::string& word = cmd->behind[i];
    std::string name = word.substr(0, word.find('='));
    std::ranges::replace(name, '_', '-');
    const bool may_be_own = cmd->has_blanks() ? name.size() > 1 && name.starts_with('-')
                                              : name.starts_with("--") && name != "--help";
    const CLI::Option* own = !may_be_own         ? nullptr
                             : cmd->has_blanks() ? find_option(&command, name)
                                                 : command.get_option_no_throw(name);
    if (own == nullptr && command.get_name() == "sweep" && is_parameter(word)) {
      all.insert(all.end(), {"--param", word});
    } else if (own == nullptr) {
      line.push_back(word);
    } else {
      all.push_back(word);
      const std::size_t values = word.find('=') == std::string::npos ? count_values(*own) : 0;
      for (std::size_t left = values; left > 0 && i + 1 < cmd->behind.size(); --left) {
        all.push_back(cmd->behind[++i]);
      }
    }
  }
  const bool lacks_points =
      command.get_name() == "sweep" && std::ranges::none_of(all, [](const std::string& word) {
        return word.starts_with("--param") || word.starts_with("--file");
      });
  if (lacks_points || (line.empty() && all.size() == cmd->before.size() + cmd->behind.size())) {
    return "";
  }
  all.insert(all.end(), {"--cmd", line.empty() ? cmd->value : cmd->value + " " + shell_join(line)});
  return (line.empty() ? "write " : "put the whole line in quotes: ") + write_line(std::move(all));
}

std::string find_own_option(const CLI::App& command, const std::vector<std::string>& words) {
  const auto cmd = find_cmd(command, words);
  if (!cmd || cmd->has_blanks()) {
    return "";
  }
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  for (std::size_t i = 0; i < cmd->options && i < cmd->behind.size(); ++i) {
    const std::string& word = cmd->behind[i];
    const CLI::Option* first = word.size() > 1 ? find_option(&command, word.substr(0, 2)) : nullptr;
    const bool has_value = first != nullptr && count_values(*first) > 0;  // "-Hhost"
    const bool is_short = word.size() > 1 && word[0] == '-' && !has_value &&
                          word.find_first_not_of(letters, 1) == std::string::npos;
    if (word == "--help" || word == "--version" || (is_short && word.find('h') != std::string::npos)) {
      return word;
    }
  }
  return "";
}

std::string find_flag_behind_cmd(const CLI::App& command, const std::vector<std::string>& words) {
  const auto cmd = find_cmd(command, words);
  if (!cmd || cmd->has_blanks() || cmd->behind.empty() || cmd->options == 0) {
    return "";
  }
  const std::string& word = cmd->behind.front();
  const bool is_short = word.size() > 1 && word[0] == '-' && word[1] != '-';
  const std::string name = word.substr(0, 2);
  const CLI::Option* flag = is_short ? find_option(&command, name) : nullptr;
  const bool is_global = flag != nullptr && command.get_option_no_throw(name) == nullptr;
  return is_global && count_values(*flag) == 0 && !quotes_hint(command, words).empty() ? word : "";
}

}  // namespace remote::cli
