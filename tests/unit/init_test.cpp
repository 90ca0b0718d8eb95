#include "config/init.hpp"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <remote/error.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.hpp"
#include "config/config.hpp"

namespace remote::config {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Init, ParsesServers) {
  const NewServer plain = parse_new_server("a=host");
  EXPECT_EQ(plain.name, "a");
  EXPECT_EQ(plain.hostname, "host");
  EXPECT_EQ(plain.username, std::nullopt);
  EXPECT_EQ(plain.port, std::nullopt);
  const NewServer full = parse_new_server("gpu-1=ada@10.0.0.1:2222");
  EXPECT_EQ(full.hostname, "10.0.0.1");
  EXPECT_EQ(full.username, "ada");
  EXPECT_EQ(full.port, 2222);
  const NewServer v6 = parse_new_server("v6=root@[fe80::1%eth0]:22");
  EXPECT_EQ(v6.hostname, "fe80::1%eth0");
  EXPECT_EQ(v6.port, 22);
  EXPECT_EQ(parse_new_server("v6=[::1]").hostname, "::1");
  EXPECT_EQ(parse_new_server("v6=::1").hostname, "::1");
  EXPECT_EQ(parse_new_server("v6=::1").port, std::nullopt);
  for (const char* bad :
       {"host", "=host", "a=", "../x=h", "a b=h", "a=h:0", "a=h:65536", "a=h:", "a=h:x", "a=@h",
        "a=-oProxyCommand=x", "a=[::1", "a=[::1]22", "a=[h]:22", "a=[]", "a=h h", "a=u@", "", "a=ssh://h"}) {
    try {
      parse_new_server(bad);
      ADD_FAILURE() << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage) << bad;
    }
  }
}

TEST(Init, TextLoadsWithTheValuesGiven) {
  NewProject project{"/p/a b #c", std::nullopt, {}};
  for (const char* server : {"a=u@[::1]:22", "true=3.19.32.53", "123=host", "n.o=10.0.0.1"}) {
    project.servers.push_back(parse_new_server(server));
    project.servers.back().private_key = "./.remote/my \"key\"\\x";
  }
  const Config config = parse(new_config_text(project), project.folder);
  EXPECT_THAT(config.warnings, IsEmpty());
  EXPECT_EQ(config.name, "a b #c");
  ASSERT_EQ(config.servers.size(), 4U);
  EXPECT_EQ(config.servers[0].hostname, "::1");
  EXPECT_EQ(config.servers[0].username, "u");
  EXPECT_EQ(config.servers[0].port, 22);
  EXPECT_EQ(config.servers[0].private_key, "/p/a b #c/.remote/my \"key\"\\x");
  EXPECT_EQ(config.servers[1].name, "true");
  EXPECT_EQ(config.servers[2].name, "123");
}

// Each comment in the template is a key with its value: uncommented, they must load without warnings.
TEST(Init, CommentedKeysAreRealKeys) {
  std::string text = new_config_text({"/p/demo", "demo", {}});
  EXPECT_THAT(parse(text, "/p/demo").servers, IsEmpty());
  std::string loud;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    std::string line = text.substr(at, end - at);
    at = end + 1;
    const std::size_t hash = line.find("# ");
    const std::size_t colon = line.find(':');
    const bool key = hash != std::string::npos && colon != std::string::npos &&
                     line.find_first_not_of("abcdefghijklmnopqrstuvwxyz_- ", hash + 2) == colon &&
                     (colon + 1 == line.size() || line[colon + 1] == ' ') &&
                     line.find("password:") == std::string::npos;
    if (key) {
      line.erase(hash, 2);
    }
    loud += line.starts_with("More keys") ? "\n" : line + "\n";
  }
  // The keys of a server follow "More keys of a server": put them under the example's server.
  const std::size_t more = loud.find("# More keys of a server");
  std::string server_keys;
  const std::size_t begin =
      more == std::string::npos ? loud.find("  port: 22") : loud.find("  port: 22", more);
  ASSERT_NE(begin, std::string::npos);
  const std::size_t end = loud.find("\n\n", begin);
  server_keys = loud.substr(begin, end - begin + 1);
  loud.erase(begin, end - begin + 1);
  std::string indented;
  for (std::size_t at = 0; at < server_keys.size();) {
    const std::size_t stop = server_keys.find('\n', at);
    indented += "  " + server_keys.substr(at, stop - at) + "\n";
    at = stop + 1;
  }
  const std::size_t after = loud.find("private_key");
  loud.insert(loud.find('\n', after) + 1, indented);
  const Config config = parse(loud, "/p/demo");
  EXPECT_THAT(config.warnings, IsEmpty()) << loud;
  ASSERT_EQ(config.servers.size(), 1U) << loud;
  EXPECT_EQ(config.servers[0].gpus, 8) << loud;
  EXPECT_EQ(config.servers[0].proxy_jump, "user@bastion");
  EXPECT_EQ(config.python.version, "3.11");
  EXPECT_THAT(config.system_packages, ElementsAre("git"));
}

TEST(Init, WritesWhatIsMissingAndNothingElse) {
  const TempFolder folder("remote init ");
  const InitResult first = init_project({folder.path(), "p", {parse_new_server("a=h")}});
  EXPECT_THAT(first.created,
              ElementsAre(".remote/.gitignore", ".remote/exclude.txt", ".remote/configs.yaml"));
  EXPECT_THAT(first.existing, IsEmpty());
  struct stat info {};
  ASSERT_EQ(::stat((folder.path() / ".remote/configs.yaml").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  EXPECT_EQ(load(folder.path()).servers.at(0).hostname, "h");

  fs::remove(folder.path() / ".remote/.gitignore");
  write_file_atomic(folder.path() / ".remote/exclude.txt", "mine\n");
  const std::string before = read_file(folder.path() / ".remote/configs.yaml");
  const InitResult second = init_project({folder.path(), "other", {}});
  EXPECT_THAT(second.created, ElementsAre(".remote/.gitignore"));
  EXPECT_THAT(second.existing, ElementsAre(".remote/exclude.txt", ".remote/configs.yaml"));
  EXPECT_EQ(read_file(folder.path() / ".remote/configs.yaml"), before);
  EXPECT_EQ(read_file(folder.path() / ".remote/exclude.txt"), "mine\n");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path() / ".remote"), fs::directory_iterator()), 3)
      << "no temporary file stays";
}

TEST(Init, WritesNothingOfWhatWouldNotLoad) {
  const TempFolder folder;
  EXPECT_THROW(init_project({folder.path(), "../x", {}}), Error);
  EXPECT_THROW(init_project({folder.path(), "p", {parse_new_server("a=h"), parse_new_server("a=i")}}), Error);
  EXPECT_FALSE(fs::exists(folder.path() / ".remote"));
}

TEST(Init, KeepsADanglingLink) {
  const TempFolder folder;
  make_folders(folder.path() / ".remote");
  fs::create_symlink("nowhere", folder.path() / ".remote/exclude.txt");
  EXPECT_THAT(init_project({folder.path(), "p", {}}).existing, ElementsAre(".remote/exclude.txt"));
  EXPECT_TRUE(fs::is_symlink(folder.path() / ".remote/exclude.txt"));
}

TEST(Init, PathOfTheKey) {
  EXPECT_EQ(private_key_value("k", "/p/demo/.remote", "/p/demo"), "./.remote/k");
  EXPECT_EQ(private_key_value("../k", "/p/demo", "/p/demo"), "/p/k");
  EXPECT_EQ(private_key_value("~/.ssh/id", "/p/demo", "/p/demo"), "~/.ssh/id");
  EXPECT_EQ(private_key_value("/etc/k", "/p/demo", "/p/demo"), "/etc/k");
}

TEST(Init, YamlText) {
  for (const char* plain : {"abc", "./x/y", "/x", "~/x", "3.19.32.53", "a-b_c.d"}) {
    EXPECT_EQ(yaml_text(plain), plain);
  }
  for (const char* quoted : {"", "1", "3.11", "true", "No", "~", "a b", "a:", "#a", "-a", "1e5", "null"}) {
    EXPECT_EQ(yaml_text(quoted), "\"" + std::string(quoted) + "\"");
  }
  EXPECT_EQ(yaml_text("a\"\\b"), "\"a\\\"\\\\b\"");
}

}  // namespace
}  // namespace remote::config
