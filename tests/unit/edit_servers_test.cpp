#include "config/edit_servers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <remote/error.hpp>

#include "config/config.hpp"

namespace remote::test {
namespace {

using config::NewServer;
using ::testing::HasSubstr;

std::string put(const std::string& text, const NewServer& server) {
  return config::put_server(text, "/p", server).text;
}
std::string remove(const std::string& text, const std::string& name) {
  return config::remove_server(text, "/p", name);
}

const NewServer b{"b", "192.0.2.2", "root", 40022, std::nullopt};

TEST(EditServers, AddsBehindTheLastOne) {
  EXPECT_EQ(put("name: p\nservers:\n  a:  # first\n    hostname: x  # its address\n\n# of all\npython: "
                "{manager: venv}\n",
                b),
            "name: p\nservers:\n  a:  # first\n    hostname: x  # its address\n"
            "  b:\n    hostname: 192.0.2.2\n    port: 40022\n    username: root\n\n# of all\npython: "
            "{manager: venv}\n");
  EXPECT_EQ(put("servers:\n    a: {hostname: x}\n    # the last one", b),
            "servers:\n    a: {hostname: x}\n    # the last one\n"
            "    b:\n      hostname: 192.0.2.2\n      port: 40022\n      username: root\n");
}

TEST(EditServers, AddsTheFirstOne) {
  const std::string block = "  b:\n    hostname: 192.0.2.2\n    port: 40022\n    username: root\n";
  EXPECT_EQ(put("name: p\n", b), "name: p\nservers:\n" + block);
  EXPECT_EQ(put("", b), "servers:\n" + block);
  EXPECT_EQ(put("servers:  # none yet\n  # c: {hostname: d}\nname: p\n", b),
            "servers:  # none yet\n" + block + "  # c: {hostname: d}\nname: p\n");
  EXPECT_EQ(put("servers: {}\nname: p\n", b), "servers:\n" + block + "name: p\n");
  EXPECT_EQ(put("servers: [ ]\n", b), "servers:\n" + block);
  const std::string fresh = config::new_config_text({.folder = "/p", .name = "p", .servers = {}});
  EXPECT_EQ(config::parse(put(fresh, b), "/p").servers.size(), 1U);
  EXPECT_THAT(put(fresh, b), Not(HasSubstr("first-server:\n")));
}

TEST(EditServers, AddsWithinBraces) {
  EXPECT_EQ(put("servers: {a: {hostname: x}}\n", b),
            "servers: {a: {hostname: x}, b: {hostname: 192.0.2.2, port: 40022, username: root}}\n");
  EXPECT_EQ(put("servers: {\n  a: {hostname: x, prologue: 'y}'}  # }\n}\n", b),
            "servers: {\n  a: {hostname: x, prologue: 'y}'}, b: {hostname: 192.0.2.2, port: 40022, username: "
            "root}  # }\n}\n");
}

TEST(EditServers, ChangesTheAddressAlone) {
  EXPECT_EQ(put("servers:\n  b:\n    env: {A: 1}\n    hostname: \"old\"  # rented\n    gpus: 2\n    port: 1 "
                "# often\n",
                b),
            "servers:\n  b:\n    env: {A: 1}\n    hostname: 192.0.2.2  # rented\n    username: root\n    "
            "gpus: 2\n    port: 40022 # often\n");
  EXPECT_EQ(put("servers:\n  b: {hostname: old, username: 'me', gpus: 2}  # x\n", b),
            "servers:\n  b: {hostname: 192.0.2.2, port: 40022, username: root, gpus: 2}  # x\n");
  // Without a port, it is 22; user and key stay the same if not given.
  EXPECT_EQ(put("servers:\n  b:\n    hostname: old\n    port: 40022\n    username: me\n",
                {"b", "new", std::nullopt, std::nullopt, std::nullopt}),
            "servers:\n  b:\n    hostname: new\n    port: 22\n    username: me\n");
  const std::string text = "servers:\n  b:\n    hostname: 192.0.2.2\n    port: 40022\n    username: root\n";
  EXPECT_EQ(put(text, b), text);
}

TEST(EditServers, KeepsLinesOfWindows) {
  const std::string text =
      put("servers:\r\n  b:\r\n    hostname: old\r\n    port: 1\r\n    username: me\r\n", b);
  EXPECT_EQ(text, "servers:\r\n  b:\r\n    hostname: 192.0.2.2\r\n    port: 40022\r\n    username: root\r\n");
}

TEST(EditServers, RefusesWhatItCannotChange) {
  for (const char* text : {"common: &c {hostname: x}\nservers:\n  b: *c\n  d: *c\n",
                           "servers:\n  a: &x {hostname: &h one}\n  b: {hostname: *h}\n",
                           "servers:\n  b:\n    <<: {hostname: x}\n", "servers: ~\n"}) {
    EXPECT_THROW(put(text, b), Error) << text;
  }
  EXPECT_THROW(put("servers: [", b), Error);
}

TEST(EditServers, Removes) {
  const std::string text =
      "servers:\n  # of the lab\n  a:\n    hostname: x\n\n  # rented\n  b:\n    hostname: y\n    # fast\n"
      "  # the last\n  c: {hostname: z}\nname: p\n";
  EXPECT_EQ(remove(text, "b"),
            "servers:\n  # of the lab\n  a:\n    hostname: x\n\n  # rented\n"
            "  # the last\n  c: {hostname: z}\nname: p\n");
  EXPECT_EQ(
      remove(text, "c"),
      "servers:\n  # of the lab\n  a:\n    hostname: x\n\n  # rented\n  b:\n    hostname: y\n    # fast\n"
      "  # the last\nname: p\n");
  EXPECT_EQ(remove("servers: {a: {hostname: x}, b: {hostname: y}}\n", "b"), "servers: {a: {hostname: x}}\n");
  EXPECT_EQ(remove("servers: {a: {hostname: x}, b: {hostname: y}}\n", "a"), "servers: {b: {hostname: y}}\n");
  EXPECT_TRUE(config::parse(remove("name: p\nservers:\n  a: {hostname: x}\n", "a"), "/p").servers.empty());
  EXPECT_THROW(remove(text, "d"), Error);
  EXPECT_THROW(remove("servers: {a: {hostname: x}, b: {hostname: y}}\nspares: [b]\n", "b"), Error);
}

}  // namespace
}  // namespace remote::test
