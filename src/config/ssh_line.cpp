#include "config/ssh_line.hpp"

#include <algorithm>

#include <remote/error.hpp>

#include "base/command.hpp"
#include "base/strings.hpp"
#include "config/validate.hpp"
#include "config/yaml_reader.hpp"

namespace remote::config {
namespace {

// The options of ssh(1) that have a value.
constexpr std::string_view with_value = "BbcDEeFIiJLlmOoPpQRSWw";

constexpr std::string_view uri_scheme = "ssh://";
constexpr const char* right_line =
    "give the ssh command that the provider shows, in quotes: 'ssh -p 40022 root@HOST'";

// Whether a word ends as a shell's prompt does: "$", "root@c1:~#".
bool ends_prompt(std::string_view word) {
  return !word.empty() && std::string_view("$#%>").find(word.back()) != std::string_view::npos;
}

// The words without a prompt before them and a comment after them.
std::vector<std::string> read_pasted_words(std::string_view text) {
  std::vector<std::string> words = shell_words(text);
  if (words.size() > 2 && words[0].starts_with('[') && ends_prompt(words[1])) {  // "[root@c1 ~]# "
    words.erase(words.begin());
  }
  if (words.size() > 1 && ends_prompt(words[0])) {
    words.erase(words.begin());
  }
  words.erase(std::ranges::find_if(words, [](const std::string& word) { return word.starts_with('#'); }),
              words.end());
  return words;
}

bool is_ssh(std::string_view word) {
  const std::string_view name = word.substr(word.rfind('/') + 1);
  return name == "ssh" || name == "ssh.exe";
}

// The index of ssh among the words; their number if they are no command for ssh. Skips sudo and sshpass.
std::size_t find_ssh(const std::vector<std::string>& words) {
  const bool has_starter = !words.empty() && (words.front() == "sudo" || words.front() == "sshpass");
  const auto found = has_starter ? std::ranges::find_if(words, is_ssh) : words.begin();
  return found != words.end() && is_ssh(*found) ? static_cast<std::size_t>(found - words.begin())
                                                : words.size();
}

class LineReader {
 public:
  LineReader(const std::string& text, const std::string& where)
      : where_(where), words_(read_pasted_words(text)) {}

  SshLine read() {
    const std::size_t ssh = find_ssh(words_);
    if (ssh == words_.size()) {  // "ssh://…" alone
      words_.insert(words_.begin(), "ssh");
    } else if (ssh > 0) {
      line_.left_out.push_back(words_.front());  // without its arguments: a password
      words_.erase(words_.begin(), words_.begin() + static_cast<std::ptrdiff_t>(ssh));
    }
    for (at_ = 1; at_ < words_.size(); ++at_) {
      const std::string& word = words_[at_];
      if (word.size() > 1 && word.starts_with('-') && word != "--") {
        read_options(word);
      } else if (word != "--") {
        read_destination(word);
        read_rest();
        return std::move(line_);
      }
    }
    throw wrong("it names no machine");
  }

 private:
  Error wrong(const std::string& why) const { return Error::usage(where_, why, right_line); }

  // "-p 22", "-p22", "-NTp 22"
  void read_options(const std::string& word) {
    for (std::size_t i = 1; i < word.size(); ++i) {
      if (with_value.find(word[i]) == std::string_view::npos) {
        line_.left_out.push_back(std::string("-") + word[i]);
        continue;
      }
      std::string value = word.substr(i + 1);
      if (value.empty()) {
        if (++at_ == words_.size()) {
          throw wrong(std::string("-") + word[i] + " has no value");
        }
        value = words_[at_];
      }
      set(word[i], value);
      return;
    }
  }

  void set(char option, const std::string& value) {
    switch (option) {
      case 'p':
        set_port(value);
        break;
      case 'l':
        line_.username = value;
        break;
      case 'i':
        set_key(value);
        break;
      case 'J':
        line_.proxy_jump = value;
        break;
      case 'o':
        set_keyword(value);
        break;
      default:
        line_.left_out.push_back(std::string("-") + option + " " + value);
    }
  }

  // The shell's rules have removed the backslashes of "C:\\Users\\ada\\key".
  void set_key(const std::string& value) {
    if (value.size() > 1 && value[1] == ':') {
      line_.left_out.emplace_back("-i with a path of Windows");
    } else {
      line_.private_key = value;
    }
  }

  void set_port(const std::string& value) {
    const auto port = parse_number<int>(value);
    if (!port || *port < 1 || *port > 65535) {
      throw wrong("'" + printable(value) + "' is not a port");
    }
    line_.port = port;
  }

  // "Port=22", "Port 22"
  void set_keyword(const std::string& text) {
    const std::size_t end = text.find_first_of("= ");
    const std::string keyword = lower_case(text.substr(0, end));
    const std::string value =
        end == std::string::npos ? "" : std::string(trim(std::string_view(text).substr(end + 1)));
    if (keyword == "port") {
      set_port(value);
    } else if (keyword == "user") {
      line_.username = value;
    } else if (keyword == "identityfile") {
      set_key(value);
    } else if (keyword == "proxyjump") {
      line_.proxy_jump = value;
    } else if (keyword == "hostname") {
      hostname_ = value;
    } else {
      line_.left_out.push_back("-o " + text);
    }
  }

  void read_destination(std::string word) {
    const bool is_uri = word.starts_with(uri_scheme);
    if (is_uri) {
      word.erase(0, uri_scheme.size());
      word.erase(word.find('/') == std::string::npos ? word.size() : word.find('/'));
    }
    const HostPort at = parse_host_port(word, where_);
    if (at.port && !is_uri) {
      throw wrong("ssh takes a port with -p, not in '" + printable(word) + "'");
    }
    line_.hostname = at.host;
    line_.username = at.user ? at.user : line_.username;
    line_.port = at.port ? at.port : line_.port;
  }

  // ssh also accepts options after the destination; the command starts after these.
  void read_rest() {
    for (++at_;
         at_ < words_.size() && words_[at_].size() > 1 && words_[at_].starts_with('-') && words_[at_] != "--";
         ++at_) {
      read_options(std::string(words_[at_]));
    }
    if (at_ < words_.size()) {
      line_.left_out.push_back(
          "the command " +
          join(std::vector<std::string>(words_.begin() + static_cast<std::ptrdiff_t>(at_), words_.end()),
               " "));
    }
    if (!hostname_.empty()) {
      line_.hostname = hostname_;
    }
  }

  const std::string& where_;
  std::vector<std::string> words_;
  std::size_t at_ = 0;
  std::string hostname_;
  SshLine line_;
};

}  // namespace

bool is_ssh_line(std::string_view text) {
  const std::vector<std::string> words = read_pasted_words(text);
  return find_ssh(words) < words.size() || (!words.empty() && words.front().starts_with(uri_scheme));
}

void refuse_other_command(std::string_view text, const std::string& where) {
  const std::vector<std::string> words = read_pasted_words(text);
  if (words.size() > 1) {
    throw Error::usage(where, "'" + printable(words.front()) + "' is not ssh", right_line);
  }
}

SshLine parse_ssh_line(const std::string& text, const std::string& where) {
  return LineReader(text, where).read();
}

}  // namespace remote::config
