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

class LineReader {
 public:
  LineReader(const std::string& text, const std::string& where) : where_(where), words_(shell_words(text)) {}

  SshLine read() {
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
  Error wrong(const std::string& why) const {
    return Error::usage(where_, why,
                        "give the line as the provider shows it, in quotes: 'ssh -p 40022 root@HOST'");
  }

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
        line_.private_key = value;
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
      line_.private_key = value;
    } else if (keyword == "proxyjump") {
      line_.proxy_jump = value;
    } else if (keyword == "hostname") {
      hostname_ = value;
    } else {
      line_.left_out.push_back("-o " + text);
    }
  }

  void read_destination(std::string word) {
    constexpr std::string_view scheme = "ssh://";
    const bool is_uri = word.starts_with(scheme);
    if (is_uri) {
      word.erase(0, scheme.size());
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
  const std::string_view line = trim(text);
  return line.starts_with("ssh ") || line.starts_with("ssh\t") || line == "ssh";
}

SshLine parse_ssh_line(const std::string& text, const std::string& where) {
  return LineReader(text, where).read();
}

}  // namespace remote::config
