#include "cli/words.hpp"

#include <algorithm>

#include <CLI/App.hpp>
#include <remote/exit_status.hpp>

#include "base/shell_quote.hpp"

namespace remote::cli {

namespace {

// Other programs' names of options: for those that have the second one.
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

namespace {

std::size_t values_of(const CLI::Option& option) {
  return static_cast<std::size_t>(std::max(0, option.get_items_expected_min()));
}

// How many of the following words belong to a word such as "-e" or "-vn".
std::size_t values_of_letters(const CLI::App* command, const std::string& word) {
  for (std::size_t i = 1; i < word.size(); ++i) {
    const CLI::Option* option = find_option(command, std::string("-") + word[i]);
    if (option == nullptr) {
      return 0;  // CLI11 tells
    }
    if (const std::size_t values = values_of(*option); values > 0) {
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

  // False at the end of what is to be read.
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
      copy(words_.size());  // what CLI11 makes of it
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
    const std::size_t values = option != nullptr ? values_of(*option) : 0;
    if (name == "--env" && values == 2 && take_variable(word, equals)) {
      return;
    }
    line_.words.push_back(equals == std::string::npos ? name : name + word.substr(equals));
    ++at_;
    copy(equals == std::string::npos ? values : values - std::min<std::size_t>(values, 1));
  }

  // Whether the words are a variable, which then was taken.
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

std::string quoted_line(const CLI::App& command, const std::vector<std::string>& words) {
  const auto option = std::ranges::find(words, "--cmd");
  if (words.end() - option < 3 || (option + 1)->find_first_of(" \t\n") != std::string::npos) {
    return "";
  }
  std::vector<std::string> all{"remote"};
  all.insert(all.end(), words.begin(), option);
  std::vector<std::string> line{*(option + 1)};
  for (auto word = option + 2; word != words.end(); ++word) {
    std::string name = word->substr(0, word->find('='));
    std::ranges::replace(name, '_', '-');
    const CLI::Option* own = name.starts_with("--") ? command.get_option_no_throw(name) : nullptr;
    if (own == nullptr) {
      line.push_back(*word);
      continue;
    }
    all.push_back(*word);
    const std::size_t values = word->find('=') == std::string::npos ? values_of(*own) : 0;
    for (std::size_t i = 0; i < values && word + 1 != words.end(); ++i) {
      all.push_back(*++word);
    }
  }
  all.insert(all.end(), {"--cmd", shell_join(line)});
  return shell_join(all);
}

}  // namespace remote::cli
