"""What is on the screen: the widgets in the page's link, the focus, and how every page looks."""
