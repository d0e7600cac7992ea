start(new Page(JSON.parse(document.getElementById("data").textContent)));
