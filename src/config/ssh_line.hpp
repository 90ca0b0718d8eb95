#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace remote::config {

// The ssh command that a provider displays for a rented machine, as it is pasted: "ssh -p 40022
// root@ssh5.example -i ~/.ssh/id_rsa", "$ ssh …", "sudo ssh …" or "ssh://root@ssh5.example:40022".
struct SshLine {
  std::string hostname;
  std::optional<std::string> username;
  std::optional<int> port;  // nullopt: ssh's default, 22
  std::optional<std::string> private_key;
  std::optional<std::string> proxy_jump;
  std::vector<std::string> left_out;  // options without a key in configs.yaml: "-L 8080:localhost:8080"
};

// Whether a text is such a command.
bool is_ssh_line(std::string_view text);

// Throws Error (usage), with `where` as its what_failed(), if the text is the command of another program.
void refuse_other_command(std::string_view text, const std::string& where);

// Throws Error (usage) with `where` as its what_failed().
SshLine parse_ssh_line(const std::string& text, const std::string& where);

}  // namespace remote::config
